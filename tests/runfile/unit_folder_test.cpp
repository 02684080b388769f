#include "runfile/unit_folder.h"

#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gainlens::runfile {
namespace {

using gainlens::testing::refusal_of;
using gainlens::testing::write_file;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const Json request = {{"format", "test"}, {"seed", 1}, {"text", "a"}};

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
  EXPECT_EQ(read_json_file(again.unit_file("a")), Json({1, 2}));
  EXPECT_FALSE(again.has_unit("b"));
  EXPECT_EQ(again.unit_file("a"), run_ / "units" / "a.json");
  EXPECT_THAT(refusal_of([&] { UnitFolder(run_, request, {}); }), HasSubstr("is writing this run"));
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

TEST_F(UnitFolders, WithoutAPathKeepNothing) {
  UnitFolder folder({}, request, {});
  folder.keep_unit("a", 1);
  EXPECT_FALSE(folder.has_unit("a"));
  EXPECT_TRUE(folder.path().empty());
}

}  // namespace
}  // namespace gainlens::runfile
