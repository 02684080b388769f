#include "runfile/unit_folder.h"

#include "support/file_bytes.h"
#include "support/recording_listener.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gainlens::runfile {
namespace unit_folder_test {

using gainlens::testing::bytes_of;
using gainlens::testing::refusal_of;
using gainlens::testing::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const Json request = {{"format", "test"}, {"seed", 1}, {"text", "a"}};

Json itself(const Json& unit) {
  return unit;
}

class UnitFolders : public ::testing::Test {
 protected:
  gainlens::testing::TemporaryFolder folder_;
  fs::path run_ = folder_.path() / "run";
};

TEST_F(UnitFolders, KeepUnitsForALaterCall) {
  {
    UnitFolder folder(run_, request, {});
    EXPECT_FALSE(folder.has_unit("a"));
    folder.keep_unit("a", {1, 2});
  }
  const UnitFolder again(run_, request, {});
  EXPECT_TRUE(again.has_unit("a"));
  EXPECT_EQ(again.unit("a", itself), Json({1, 2}));
  EXPECT_FALSE(again.has_unit("b"));
  EXPECT_EQ(again.unit("b", itself), std::nullopt);
  EXPECT_TRUE(fs::exists(run_ / "units" / "a.json"));
  EXPECT_THAT(refusal_of([&] { UnitFolder(run_, request, {}); }), HasSubstr("is writing this run"));
}

TEST_F(UnitFolders, TellWhatAnEarlierCallHasMeasured) {
  const gainlens::testing::RecordingListener told;
  {
    UnitFolder folder(run_, request, {});
    folder.tell_of_stored();  // there is nothing to tell
    folder.keep_unit("a", 1);
    folder.tell_of_stored();
    folder.keep_unit("b", 2);
  }
  UnitFolder(run_, request, {}).tell_of_stored();
  EXPECT_THAT(told.notices(),
              ElementsAre(run_.string() + ": 1 unit was measured by an earlier call; this one continues",
                          run_.string() + ": 2 units were measured by an earlier call; this one continues"));
}

TEST_F(UnitFolders, WithoutAUnitNothingStays) {
  { const UnitFolder folder(run_, request, {}); }
  EXPECT_FALSE(fs::exists(run_));
  fs::create_directory(run_);
  { const UnitFolder folder(run_, request, {}); }
  EXPECT_TRUE(fs::is_empty(run_));
  const fs::path deep = folder_.path() / "new" / "folders";
  { const UnitFolder folder(deep, request, {}, {{"plan.json", "{}"}}); }
  EXPECT_FALSE(fs::exists(deep.parent_path()));
  UnitFolder(deep, request, {}, {{"plan.json", "{}"}}).keep_unit("a", 1);
  EXPECT_EQ(read_json_file(deep / "plan.json"), Json::object());
}

TEST_F(UnitFolders, OfAnotherRequestAreRefused) {
  UnitFolder(run_, request, {}).keep_unit("a", 1);
  Json other = request;
  other["seed"] = 2;
  EXPECT_THAT(refusal_of([&] { UnitFolder(run_, other, {}); }), HasSubstr("holds a run with another seed"));
  other["text"] = "b";
  EXPECT_THAT(refusal_of([&] { UnitFolder(run_, other, {"text"}); }), HasSubstr("holds a run with other text"));
  other["format"] = "else";
  EXPECT_THAT(refusal_of([&] { UnitFolder(run_, other, {}); }), HasSubstr("holds another run"));
  fs::create_directory(folder_.path() / "own");
  write_file(folder_.path() / "own" / "mine.txt", "x");
  EXPECT_THAT(refusal_of([&] { UnitFolder(folder_.path() / "own", request, {}); }), HasSubstr("holds 'mine.txt'"));
}

TEST_F(UnitFolders, AChangedUnitIsRefused) {
  UnitFolder folder(run_, request, {});
  folder.keep_unit("a", {{"nll", 1.25}});
  folder.keep_unit("b", {{"nll", 1.25}});
  const fs::path a = run_ / "units" / "a.json", b = run_ / "units" / "b.json";
  EXPECT_NE(bytes_of(a), bytes_of(b));
  const std::string whole = bytes_of(a);
  const auto refusal_with = [&](const std::string& bytes) {
    write_file(a, bytes);
    return refusal_of([&] { folder.unit("a", itself); });
  };
  std::string changed = whole;
  changed.replace(changed.find("1.25"), 4, "1.26");
  const std::string damaged = "a.json: is damaged (it is not what was written, or that of another run); delete it and";
  EXPECT_THAT(refusal_with(changed), HasSubstr(damaged));
  EXPECT_THAT(refusal_with(bytes_of(b)), HasSubstr(damaged));  // a unit of another name
  EXPECT_THAT(refusal_with(R"({"sha256": 1, "unit": 2})"), HasSubstr(damaged));
  EXPECT_THAT(refusal_with("{"), HasSubstr("a.json"));
  EXPECT_THAT(refusal_with("[1]"), HasSubstr("has no checksum, as units of older versions; delete " +
                                             (run_ / "units").string() + " and repeat the command"));
  write_file(a, whole);
  EXPECT_EQ(folder.unit("a", itself), Json({{"nll", 1.25}}));
  Json other = request;
  other["seed"] = 2;
  EXPECT_THAT(refusal_of([&] { StoredUnits(run_, other).read("a", itself); }), HasSubstr("that of another run"));
  EXPECT_EQ(StoredUnits(run_, request).names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(StoredUnits(folder_.path() / "nowhere", request).names().empty());
}

/// What is advised works: the unit is computed again.
TEST_F(UnitFolders, WithoutUnitsGoOn) {
  UnitFolder(run_, request, {}).keep_unit("a", 1);
  fs::remove_all(run_ / "units");
  UnitFolder folder(run_, request, {});
  EXPECT_FALSE(folder.has_unit("a"));
  folder.keep_unit("a", 1);
  EXPECT_EQ(folder.unit("a", itself), Json(1));
}

TEST_F(UnitFolders, WithoutAPathKeepNothing) {
  UnitFolder folder({}, request, {});
  folder.keep_unit("a", 1);
  EXPECT_FALSE(folder.has_unit("a"));
  EXPECT_TRUE(folder.path().empty());
}

}  // namespace unit_folder_test
}  // namespace gainlens::runfile
