#include "runfile/coordinates.h"

#include "runfile/made_run.h"
#include "runfile/run_file.h"
#include "runfile/stored.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <sstream>

namespace gainlens::runfile {
namespace coordinates_test {

using ::testing::ElementsAre;
using testing::made_request;
using testing::StoredFile;
using testing::TemporaryFolder;

/// A run.h5 without measured chunks.
class EmptyRun {
 public:
  explicit EmptyRun(const Request& request) {
    write_run_file(folder_.path() / "run.h5", request, {});
    file_.emplace(folder_.path() / "run.h5");
  }
  const StoredFile* operator->() const { return &*file_; }

 private:
  TemporaryFolder folder_;
  std::optional<StoredFile> file_;
};

TEST(Coordinates, HeadsOfAKvGroupAreNeighbours) {
  Request request = made_request();
  EXPECT_THAT(EmptyRun(request)->numbers("kv_head_of_head"), ElementsAre(0, 0, 1, 1));
  request.heads = 6;
  request.kv_heads = 3;
  EXPECT_THAT(EmptyRun(request)->numbers("summary/kv_head_of_head"), ElementsAre(0, 0, 1, 1, 2, 2));
  request.kv_heads = 1;
  EXPECT_THAT(EmptyRun(request)->numbers("queries/8/kv_head_of_head"), ElementsAre(0, 0, 0, 0, 0, 0));
  request.kv_heads = 6;
  EXPECT_THAT(EmptyRun(request)->numbers("profile/kv_head_of_head"), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Coordinates, GroupsOfUnequalSizeHaveNoMap) {
  Request request = made_request();
  for (const std::int64_t kv_heads : {3, 8}) {
    request.kv_heads = kv_heads;
    const EmptyRun run(request);
    EXPECT_FALSE(run->has("kv_head_of_head"));
    EXPECT_FALSE(run->has("summary/kv_head_of_head"));
    EXPECT_EQ(run->attribute("summary/n_eff", "coordinates"), "attention token_offset key_0_visible");
  }
}

TEST(Coordinates, APositionLiesBetweenTheBordersOfItsBin) {
  const EmptyRun run(made_request());
  const auto begin = run->numbers("profile/bin_begin"), end = run->numbers("values/bin_end");
  ASSERT_EQ(begin.size(), 64u);
  ASSERT_EQ(end.size(), 64u);
  EXPECT_TRUE(run->holds_type("bin_begin", H5T_IEEE_F64LE));
  EXPECT_EQ(begin[0], 0.0);
  EXPECT_EQ(begin[1], 0.015625);
  EXPECT_EQ(end[63], 1.0);
  for (const int tokens : {1, 8, 24, 63, 64, 65, 100, 1000, 4096}) {
    for (int position = 0; position < tokens; ++position) {
      const auto bin = static_cast<std::size_t>(64 * position / tokens);
      ASSERT_LE(begin[bin] * tokens, position) << tokens;
      ASSERT_GT(end[bin] * tokens, position) << tokens;
    }
  }
}

TEST(Coordinates, OffsetsOfConsecutiveChunksAreMultiplesOfTheirTextTokens) {
  Request request = made_request();  // lengths 8 and 24, 2 samples, with a BOS: 7 and 23 tokens of text
  EXPECT_THAT(EmptyRun(request)->numbers("token_offset"), ElementsAre(0, 7, 0, 23));
  request.bos.reset();
  request.samples = 3;
  EXPECT_THAT(EmptyRun(request)->numbers("token_offset"), ElementsAre(0, 8, 16, 0, 24, 48));
}

TEST(Coordinates, OffsetsOfNestedChunksAreThoseOfTheLongest) {
  Request request = made_request();
  request.nested = true;
  EXPECT_THAT(EmptyRun(request)->numbers("summary/token_offset"), ElementsAre(0, 23, 0, 23));
}

TEST(Coordinates, OffsetsOfSpreadChunksLieAroundTheMiddleOfTheirParts) {
  Request request = made_request();
  request.spread = 500;  // the middles of the two halves are 125 and 375; chunks begin 3 and 11 tokens before them
  const EmptyRun run(request);
  EXPECT_THAT(run->numbers("token_offset"), ElementsAre(122, 372, 114, 364));
  EXPECT_THAT(run->numbers("queries/24/token_offset"), ElementsAre(114, 364));
  request.nested = true;
  EXPECT_THAT(EmptyRun(request)->numbers("token_offset"), ElementsAre(114, 364, 114, 364));
}

TEST(Coordinates, Key0IsHiddenPartlySeenOrSeen) {
  Request request = made_request();
  request.layers = {0, 1, 2};
  request.attention = {"global", "window:12", "window:13"};
  const EmptyRun run(request);
  EXPECT_TRUE(run->holds_type("key_0_visible", H5T_STD_I8LE));
  // Of 24 queries 12 to 23 are the second half. With a window of 12 query 12 sees keys 1 to 12, with 13 keys 0 to 12.
  EXPECT_THAT(run->numbers("key_0_visible"), ElementsAre(2, 2, 2, 2, 0, 1));
  EXPECT_THAT(run->numbers("queries/8/key_0_visible"), ElementsAre(2, 2, 2));
  EXPECT_THAT(run->numbers("queries/24/key_0_visible"), ElementsAre(2, 0, 1));
}

TEST(Coordinates, EveryGroupHasThoseOfItsAxes) {
  const EmptyRun run(made_request());
  const std::set<std::string> all = {"attention", "kv_head_of_head", "bin_begin",
                                     "bin_end",   "token_offset",    "key_0_visible"};
  const auto in = [&](const std::string& group) {
    std::set<std::string> found;
    for (const std::string& name : run->names(group)) {
      if (all.contains(name)) found.insert(name);
    }
    return found;
  };
  EXPECT_EQ(in("/"), all);
  EXPECT_THAT(in("summary"), ElementsAre("attention", "key_0_visible", "kv_head_of_head", "token_offset"));
  EXPECT_EQ(in("profile"), all);
  EXPECT_THAT(in("values"), ElementsAre("attention", "bin_begin", "bin_end", "key_0_visible", "token_offset"));
  for (const char* group : {"queries/8", "queries/24"})
    EXPECT_THAT(in(group), ElementsAre("attention", "key_0_visible", "kv_head_of_head", "token_offset"));
  EXPECT_TRUE(run->same_object("attention", "summary/attention"));
  EXPECT_TRUE(run->same_object("attention", "queries/24/attention"));
  EXPECT_TRUE(run->same_object("token_offset", "values/token_offset"));
  EXPECT_FALSE(run->same_object("token_offset", "queries/24/token_offset"));
}

TEST(Coordinates, ShapesFollowTheAxes) {
  const EmptyRun run(made_request());
  using Shape = std::vector<hsize_t>;
  EXPECT_EQ(run->shape("attention"), Shape{2});
  EXPECT_EQ(run->shape("token_offset"), (Shape{2, 2}));
  EXPECT_EQ(run->shape("key_0_visible"), (Shape{2, 2}));
  EXPECT_EQ(run->shape("queries/8/token_offset"), Shape{2});
  EXPECT_EQ(run->shape("queries/8/key_0_visible"), Shape{2});
}

TEST(Coordinates, ARunOfLikelihoodsHasOnlyTheOffsets) {
  Request request = made_request();
  request.statistics = false;
  const EmptyRun run(request);
  EXPECT_THAT(run->names("summary"), ElementsAre("length", "nll", "sample", "token_offset"));
}

TEST(Coordinates, DatasetsNameTheirs) {
  const EmptyRun run(made_request());
  const auto named = [&](const std::string& path) { return run->attribute(path, "coordinates"); };
  EXPECT_EQ(named("summary/n_eff"), "attention kv_head_of_head token_offset key_0_visible");
  EXPECT_EQ(named("summary/nll"), "token_offset");
  EXPECT_EQ(named("complete"), "token_offset");
  EXPECT_EQ(named("profile/gate"), "attention kv_head_of_head bin_begin bin_end token_offset key_0_visible");
  EXPECT_EQ(named("values/norm"), "attention bin_begin bin_end token_offset key_0_visible");
  EXPECT_EQ(named("values/min_norm"), "attention token_offset key_0_visible");
  EXPECT_EQ(named("queries/24/gate"), "attention kv_head_of_head token_offset key_0_visible");
  for (const char* group : {"summary", "profile", "values", "queries/8", "queries/24"}) {
    for (const std::string& name : run->names(group)) {
      if (named(std::string(group) + "/" + name) == "(absent)") continue;
      std::istringstream listed(named(std::string(group) + "/" + name));
      for (std::string coordinate; listed >> coordinate;)
        EXPECT_TRUE(run->has(std::string(group) + "/" + coordinate)) << group << "/" << name << ": " << coordinate;
    }
  }
}

TEST(Coordinates, EachSaysWhatItIs) {
  const EmptyRun run(made_request());
  for (const char* path : {"length", "sample", "layer", "head", "kv_head", "bin", "key", "queries/8/query",
                           "queries/24/query", "kv_head_of_head", "bin_begin", "bin_end", "token_offset",
                           "key_0_visible", "queries/8/token_offset", "queries/8/key_0_visible"}) {
    EXPECT_NE(run->attribute(path, "units"), "(absent)") << path;
    EXPECT_GT(run->attribute(path, "long_name").size(), 20u) << path;
  }
  EXPECT_EQ(run->attribute("length", "units"), "tokens");
  EXPECT_EQ(run->attribute("queries/24/query", "units"), "tokens");
  EXPECT_EQ(run->attribute("layer", "units"), "1");
  EXPECT_EQ(run->attribute("bin", "long_name"),
            "one of 64 equal parts of a chunk: position t of T lies in bin floor(64 t / T)");
  EXPECT_EQ(run->attribute("attention", "units"), "(absent)");  // text
  EXPECT_THAT(run->attribute("attention", "long_name"), ::testing::HasSubstr("'window:N': the last N"));
  EXPECT_EQ(run->attribute("request", "long_name"), "all that determines the numbers of this file, as JSON");
}

}  // namespace coordinates_test
}  // namespace gainlens::runfile
