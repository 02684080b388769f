#include "core/json.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace inactive_heads_command_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string models = GAINLENS_SOURCE_DIR "/tests/golden/models/";
const std::string llama = models + "llama";  // 12 heads

class InactiveHeadsCommand : public ::testing::Test {
 protected:
  std::string ids(int step) const {
    std::string text = "[";
    for (int i = 0; i < 200; ++i) text += (i == 0 ? "" : ",") + std::to_string(3 + (i * step + i * i / 7) % 58);
    return write_file(folder_.path() / ("ids-" + std::to_string(step) + ".json"), text + "]");
  }
  std::string sweep(const std::string& model, const std::vector<std::string>& more = {}) const {
    const std::string out = folder_.path() / "sweep";
    std::vector<std::string> words = {"sweep",     model, "--tokens", ids(29), "--lengths", "32",
                                      "--samples", "2",   "--out",    out,     "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(run_gainlens(words).exit_code, 0);
    return out;
  }
  ProgramResult call(const std::string& run, const std::vector<std::string>& more,
                     const std::string& model = llama) const {
    std::vector<std::string> words = {"inactive-heads", model, "--tokens",  ids(13), "--lengths", "32",
                                      "--run",          run,   "--threads", "1",     "--quiet"};
    for (const char* option : {"--samples", "--draws"})
      if (std::ranges::find(more, option) == more.end()) words.insert(words.end(), {option, "2"});
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }

  TemporaryFolder folder_;
};

TEST_F(InactiveHeadsCommand, ComparesScoresWithExactAblation) {
  const std::string run = sweep(llama);
  const ProgramResult result = call(run, {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("heads"), 12);
  EXPECT_EQ(json.at("documents"), 2);
  ASSERT_EQ(json.at("scores").size(), 15u);
  for (std::size_t i = 1; i < 15; ++i)
    EXPECT_LE(json.at("scores").at(i - 1).at("area").get<double>(), json.at("scores").at(i).at("area").get<double>());
  // 5% of 12 heads is one: the first change of the best score is that of a single head.
  const ProgramResult each = run_gainlens({"intervene", llama, "--tokens", ids(13), "--lengths", "32", "--samples", "2",
                                           "--each-head", "--quiet", "--json", "--threads", "1"});
  ASSERT_EQ(each.exit_code, 0) << each.error;
  double nearest = 1;
  const double first = json.at("scores").at(0).at("changes").at(0);
  const Json ablated = Json::parse(each.out);
  for (const Json& arm : ablated.at("arms"))
    nearest = std::min(nearest, std::abs(arm.at("delta").get<double>() - first));
  EXPECT_LT(nearest, 1e-12);

  const ProgramResult table = call(run, {"--out", folder_.path() / "kept"});
  EXPECT_EQ(table.exit_code, 0) << table.error;
  for (const char* part : {"12 heads", "random heads", "scaled K (filter)", "|v_0| / layer", "best of the filter, "})
    EXPECT_THAT(table.out, HasSubstr(part));
  // Two heads share a KV head, and so a norm: one of the two is set to zero.
  EXPECT_THAT(table.out, HasSubstr("ties: at these shares some heads of equal score are set to zero and some are not"));
  EXPECT_THAT(table.out, ::testing::ContainsRegex("\n\\|v_0\\| +8% +2 +1\n"));
  EXPECT_THAT(table.out, HasSubstr("of the orders: "));
  EXPECT_THAT(table.out, HasSubstr("No p: a rank among fewer than 39 draws cannot reach 5%"));
  EXPECT_EQ(call(run, {"--out", folder_.path() / "kept"}).out, table.out);

  // The page, its CSV and --json hold the same numbers.
  const std::string page = folder_.path() / "page";
  const ProgramResult reported = call(run, {"--report", page, "--json"});
  EXPECT_EQ(reported.exit_code, 0) << reported.error;
  EXPECT_EQ(Json::parse(reported.out), json);
  EXPECT_EQ(Json::parse(bytes_of(page + "/summary.json")).at("inactive_heads"), json);
  const Json& best = json.at("scores").at(0);
  EXPECT_THAT(bytes_of(page + "/tables/inactive-heads.csv"),
              AllOf(HasSubstr("score,source,change at 8%,"), HasSubstr("\n" + best.at("score").get<std::string>() +
                                                                       "," + best.at("source").get<std::string>())));
  EXPECT_THAT(bytes_of(page + "/tables/inactive-heads-ties.csv"), HasSubstr("\n|v_0|,0.0833"));
  EXPECT_THAT(bytes_of(page + "/report.html"),
              AllOf(HasSubstr("scaled <i>K</i> (filter)</th>"), HasSubstr("<th scope=\"col\">Spearman</th>"),
                    HasSubstr("figure-inactive-heads")));
  expect_refused(call(run, {"--out", folder_.path() / "kept", "--report", folder_.path() / "kept"}),
                 "is the folder of a run; choose another folder");
}

TEST_F(InactiveHeadsCommand, AFolderBegunWithFiveOrdersGoesOnWithThem) {
  const std::string run = sweep(llama), kept = folder_.path() / "kept";
  const ProgramResult begun = call(run, {"--draws", "5", "--out", kept});
  ASSERT_EQ(begun.exit_code, 0) << begun.error;
  const std::vector<std::string> words = {"inactive-heads", llama,  "--tokens",  ids(13), "--lengths", "32",
                                          "--run",          run,    "--samples", "2",     "--threads", "1",
                                          "--quiet",        "--out"};
  const auto with_out = [&](const std::string& out) {
    std::vector<std::string> all = words;
    all.push_back(out);
    return run_gainlens(all);
  };
  const ProgramResult again = with_out(kept);
  EXPECT_EQ(again.exit_code, 0) << again.error;
  EXPECT_EQ(again.out, begun.out);
  EXPECT_THAT(again.error,
              HasSubstr("--out: was begun with 5 random orders and goes on with them; a new folder has 39"));
  const ProgramResult fresh = with_out(folder_.path() / "fresh");
  EXPECT_EQ(fresh.exit_code, 0) << fresh.error;
  EXPECT_THAT(fresh.out, HasSubstr("12 heads, 39 random orders\n"));
  EXPECT_THAT(fresh.out, Not(HasSubstr("cannot reach 5%")));
}

TEST_F(InactiveHeadsCommand, WrongRequestsGetOneLine) {
  const std::string run = sweep(llama);
  expect_refused(call(run, {}, models + "qwen3"), "is a sweep of another model; sweep this one");
  expect_refused(call(run, {"--draws", "0"}), "--draws: 0; must be at least 1");
  expect_refused(call(run, {"--samples", "0"}), "--samples: 0; must be at least 1");
  expect_refused(call(llama, {}), "is a checkpoint, and a run is needed here");
  std::vector<std::string> words = {"inactive-heads", llama, "--tokens",  ids(29), "--lengths", "32",
                                    "--run",          run,   "--samples", "2"};
  expect_refused(run_gainlens(words), "--text: is the text of the sweep that the scores are from");
}

TEST_F(InactiveHeadsCommand, AScoreWithoutALayersMeanIsLeftOut) {
  // Window 13: at 32 tokens no query of the last quarter sees key 0.
  const std::string gemma = models + "gemma3";
  const ProgramResult result = call(sweep(gemma), {}, gemma);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr("left out: weight of key 0 / layer: it is 0 in all heads of layer"));
  EXPECT_THAT(result.out, Not(HasSubstr("weight of key 0 / layer")));
  EXPECT_THAT(result.out, HasSubstr("weight of key 0 "));
}

TEST_F(InactiveHeadsCommand, SomeLayersAreNotEnough) {
  expect_refused(call(sweep(llama, {"--layers", "0:1"}), {}), "has 1 of 3 layers; sweep all of them");
}

}  // namespace inactive_heads_command_test
}  // namespace gainlens::testing
