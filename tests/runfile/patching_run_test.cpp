#include "runfile/patching_run.h"
#include "runfile/run_kind.h"

#include "core/error.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::runfile {
namespace patching_run_test {

using gainlens::testing::bytes_of;
using gainlens::testing::refusal_of;
using gainlens::testing::write_file;
using ::testing::HasSubstr;

PatchingRun some_run() {
  PatchingRun run;
  run.request = {{"format", patching_run_format}};
  run.patches = {{"blocks.1.hook_resid_pre[position=3]=patch", "hook_resid_pre", 1, {}, 3}, {"several"}};
  run.directions[0] = {0.1 + 0.2, 2, {{1, 2, 3, 4}, {5, 6, 7, 1e-300}}};
  run.directions[1] = {2, 0.3, {{8, 7, 6, 5}, {4, 3, 2, 0}}};
  return run;
}

TEST(PatchingRunFile, IsReadAsItWasWritten) {
  const gainlens::testing::TemporaryFolder folder;
  EXPECT_FALSE(is_run_of(folder.path(), RunKind::patching));
  EXPECT_THAT(refusal_of([&] { read_patching_run(folder.path()); }), HasSubstr("is not finished"));
  const PatchingRun run = some_run();
  write_patching_run(folder.path(), run);
  const PatchingRun read = read_patching_run(folder.path());
  EXPECT_EQ(read.request, run.request);
  EXPECT_EQ(read.patches, run.patches);
  EXPECT_EQ(read.directions, run.directions);
  write_file(folder.path() / "request.json", R"({"format": "gainlens-patching"})");
  EXPECT_TRUE(is_run_of(folder.path(), RunKind::patching));
}

TEST(PatchingRunFile, DamagedOnesAreRefused) {
  const gainlens::testing::TemporaryFolder folder;
  write_patching_run(folder.path(), some_run());
  const std::string whole = bytes_of(folder.path() / "patching.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    EXPECT_NE(text.find(from), std::string::npos) << from;
    write_file(folder.path() / "patching.json", text.replace(text.find(from), from.size(), to));
    return refusal_of([&] { read_patching_run(folder.path(), Proof::by_caller); });
  };
  EXPECT_THAT(with("\"version\": 1", "\"version\": 2"), HasSubstr("another format or version"));
  EXPECT_THAT(with("\"position\": 3", "\"position\": -3"), HasSubstr("position -3 cannot be"));
  EXPECT_THAT(with("\"noising\"", "\"other\""), HasSubstr("is damaged"));
  EXPECT_THAT(with("\"base\": 2.0", "\"base\": null"), HasSubstr("is damaged"));
}

TEST(PatchingRunFile, UnitsAreReadAsTheyWereWritten) {
  EXPECT_EQ(patch_unit_name(PatchDirection::noising, -1), "noising-layer--1");
  const PatchingUnit unit{{7}, {1.25, 2, {{1, 2, 3, 4}}}};
  Json json = to_json(unit);
  EXPECT_EQ(patching_unit_from(json), unit);
  json["patches"] = {7, 8};
  EXPECT_THAT(refusal_of([&] { patching_unit_from(json); }), HasSubstr("it needs 2 effects"));
}

}  // namespace patching_run_test
}  // namespace gainlens::runfile
