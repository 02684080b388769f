#include "cli/expect_checksums.h"
#include "core/json.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace intervene_patching_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string llama = GAINLENS_SOURCE_DIR "/tests/golden/models/llama";

class Patching : public ::testing::Test {
 protected:
  ProgramResult call(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"intervene", llama, "--clean", clean_, "--corrupt", corrupt_, "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }
  Json json_of(std::vector<std::string> more) const {
    more.emplace_back("--json");
    const ProgramResult result = call(more);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
    return Json::parse(result.out);
  }
  static double normalised(const Json& direction, std::size_t patch) {
    return direction.at("patches").at(patch).at("normalised").get<double>();
  }

  TemporaryFolder folder_;
  std::string clean_ = write_file(folder_.path() / "clean.json", "[5,9,33,12,40,7]");
  std::string corrupt_ = write_file(folder_.path() / "corrupt.json", "[5,9,21,12,40,7]");
  std::vector<std::string> answer_ = {"--answer", "11", "--foil", "30"};
};

/// The other way to do it: capture the clean run, and write its values into the corrupt one.
TEST_F(Patching, EqualsAPatchFromAFileOfCapture) {
  const Json all = json_of(answer_);
  EXPECT_EQ(all.at("metric"), "logit_difference");
  const Json& patches = all.at("denoising").at("patches");
  ASSERT_EQ(patches.size(), 3u * (6 + 4));
  const std::string captured = folder_.path() / "clean.safetensors";
  ASSERT_EQ(run_gainlens({"capture", llama, "--tokens", clean_, "--length", "6", "--hooks",
                          "blocks.1.hook_resid_pre,blocks.2.attn.hook_z", "--out", captured})
                .exit_code,
            0);
  int compared = 0;
  for (const std::string place : {"blocks.1.hook_resid_pre[position=2]=", "blocks.1.hook_resid_pre[position=5]=",
                                  "blocks.2.attn.hook_z[head=3]="}) {
    const ProgramResult other =
        run_gainlens({"intervene", llama, "--tokens", corrupt_, "--lengths", "6", "--samples", "1", "--set",
                      place + captured, "--answer", "11", "--foil", "30", "--quiet", "--json"});
    ASSERT_EQ(other.exit_code, 0) << other.error;
    const Json expected = Json::parse(other.out);
    EXPECT_NEAR(all.at("denoising").at("base").get<double>(),
                expected.at("native").at("logit_difference").get<double>(), 1e-6);
    for (const Json& patch : patches) {
      if (patch.at("intervention") != place + "patch") continue;
      ++compared;
      EXPECT_NEAR(patch.at("metric").get<double>(), expected.at("arms").at(0).at("logit_difference").get<double>(),
                  1e-5);
      EXPECT_NEAR(patch.at("site_norm_after").get<double>(),
                  expected.at("arms").at(0).at("site_norm_after").get<double>(), 1e-5);
    }
  }
  EXPECT_EQ(compared, 3);
}

/// What must hold whatever the weights: before the first token that differs nothing can change, and the stream of the
/// one position that differs carries everything into the first layer.
TEST_F(Patching, MovesARunFromZeroToOne) {
  for (const std::vector<std::string>& metric : {answer_, std::vector<std::string>()}) {
    const Json all = json_of(metric);
    for (const char* direction : {"denoising", "noising"}) {
      const Json& found = all.at(direction);
      EXPECT_EQ(found.at("patches").at(0).at("changes_nothing"), true);
      EXPECT_EQ(normalised(found, 0), 0);
      EXPECT_EQ(found.at("patches").at(0).at("metric"), found.at("base"));
      EXPECT_NEAR(normalised(found, 2), 1, 1e-4) << direction;
      EXPECT_NE(normalised(found, 6 + 1), 0);
    }
    EXPECT_EQ(all.at("denoising").at("base"), all.at("noising").at("other"));
    if (!metric.empty()) continue;
    EXPECT_NEAR(all.at("clean").at("metric").get<double>(), 0, 1e-12);
  }
}

TEST_F(Patching, TakesTheSitesThatAreGiven) {
  const std::string z = "blocks.1.attn.hook_z=patch",
                    joint = "blocks.0.hook_mlp_out=patch + blocks.2.hook_attn_out=patch";
  std::vector<std::string> words = answer_;
  words.insert(words.end(), {"--set", z, "--set", joint});
  const Json json = json_of(words);
  ASSERT_EQ(json.at("noising").at("patches").size(), 2u);
  EXPECT_EQ(json.at("noising").at("patches").at(1).at("intervention"), joint);
  const ProgramResult table = call(words);
  EXPECT_THAT(table.out, HasSubstr(z + "  "));
}

TEST_F(Patching, ARunIsKeptContinuedAndInspected) {
  const std::string out = folder_.path() / "run";
  std::vector<std::string> words = answer_;
  words.insert(words.end(), {"--out", out});
  const Json first = json_of(words);
  const std::string bytes = bytes_of(out + "/patching.json"), table = bytes_of(out + "/patching.csv");
  fs::remove(out + "/patching.json");
  fs::remove(out + "/patching.csv");
  fs::remove(out + "/units/noising-layer-1.json");
  EXPECT_EQ(json_of(words), first);
  EXPECT_EQ(bytes_of(out + "/patching.json"), bytes);
  EXPECT_EQ(bytes_of(out + "/patching.csv"), table);
  const ProgramResult checked = run_gainlens({"check", out});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.error;
  expect_refused(call({"--out", out}), "--out: " + out + " holds a run with 'answer'; give a new folder");
  expect_checksums(out, "patching.json");
  const ProgramResult inspected = run_gainlens({"inspect", out});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.error;
  EXPECT_THAT(inspected.out, HasSubstr("run of activation patching"));
  fs::remove(out + "/patching.json");
  fs::remove(out + "/units/noising-layer-1.json");
  EXPECT_THAT(run_gainlens({"inspect", out}).out, HasSubstr("(each patch in each direction) are measured; repeat the"));
  expect_refused(run_gainlens({"report", out}), "and a page needs all; repeat the command that makes it, which");
}

TEST_F(Patching, IsEstimatedByOneBackwardPass) {
  std::vector<std::string> words = answer_;
  words.emplace_back("--approximate");
  const Json json = json_of(words), exact = json_of(answer_);
  for (const char* direction : {"denoising", "noising"}) {
    const Json& found = json.at(direction);
    EXPECT_NEAR(found.at("other").get<double>(), exact.at(direction).at("other").get<double>(), 1e-5);
    const Json& kinds = found.at("kinds");
    ASSERT_EQ(kinds.size(), 2u);
    EXPECT_EQ(kinds.at(0).at("kind"), "hook_resid_pre=patch");
    EXPECT_EQ(kinds.at(0).at("arms"), 3 * 6);
    EXPECT_LE(kinds.at(0).at("acting").get<int>(), 3 * 4);  // two positions lie before the first token that differs
    EXPECT_EQ(kinds.at(1).at("kind"), "attn.hook_z=patch");
    EXPECT_EQ(kinds.at(1).at("exact"), kinds.at(1).at("acting"));
    EXPECT_LE(kinds.at(1).at("rank_correlation").get<double>(), 1);
    EXPECT_NEAR(found.at("native").get<double>(), exact.at(direction).at("base").get<double>(), 1e-5);
    const Json& patches = exact.at(direction).at("patches");
    ASSERT_EQ(found.at("arms").size(), patches.size());
    for (std::size_t i = 0; i < patches.size(); ++i) {
      const Json& arm = found.at("arms").at(i);
      EXPECT_EQ(arm.contains("exact"), arm.at("acts").get<bool>());  // fewer than 20 of each kind act
      if (patches.at(i).at("changes_nothing") == true) {
        EXPECT_EQ(arm.at("acts"), false) << arm;
        EXPECT_EQ(arm.at("estimate"), 0) << arm;
      }
      EXPECT_NEAR(
          arm.at("normalised").get<double>(),
          arm.at("estimate").get<double>() / (found.at("other").get<double>() - found.at("native").get<double>()),
          1e-9);
      if (!arm.contains("exact")) continue;
      EXPECT_NEAR(arm.at("exact_normalised").get<double>(), normalised(exact.at(direction), i), 1e-3);
      EXPECT_NEAR(arm.at("exact").get<double>(),
                  patches.at(i).at("metric").get<double>() - exact.at(direction).at("base").get<double>(), 1e-5);
    }
  }
  EXPECT_THAT(call(words).out, HasSubstr("rank correlation\n"));
  expect_refused(call({"--approximate"}), "needs --answer and --foil");
  const std::string table = folder_.path() / "estimates.csv";
  words.insert(words.end(), {"--out", table});
  ASSERT_EQ(call(words).exit_code, 0);
  EXPECT_THAT(bytes_of(table),
              HasSubstr("\nnoising,blocks.0.hook_resid_pre[position=2]=patch,hook_resid_pre=patch,1,"));
  words.back() = folder_.path() / "run";
  expect_refused(call(words), "must be a CSV file, FILE.csv");
  EXPECT_FALSE(fs::exists(folder_.path() / "run"));
}

TEST_F(Patching, IsReported) {
  const std::string out = folder_.path() / "run";
  ASSERT_EQ(call({"--out", out}).exit_code, 0);
  const ProgramResult report = run_gainlens({"report", out});
  EXPECT_EQ(report.exit_code, 0) << report.error;
  const std::string page = bytes_of(out + "/report/report.html");
  EXPECT_THAT(page, HasSubstr("<title>llama on "));
  EXPECT_THAT(page, HasSubstr("token 33 | token 21"));  // on the axis of positions
  expect_refused(run_gainlens({"compare", out}), "`gainlens report " + out + "` shows it");
  expect_refused(run_gainlens({"report", out, out + "x"}), "is a run of intervene; give it alone");
  expect_refused(run_gainlens({"report", out, "--at", "1k"}), "--at: is for sweeps");
}

TEST_F(Patching, WrongRequestsGetOneLine) {
  const auto refused = [&](const std::vector<std::string>& more, const std::string& reason) {
    expect_refused(call(more), reason);
  };
  refused({"--answer", "11"}, "--foil: is missing; --answer and --foil go together");
  refused({"--answer", "11", "--foil", "64"}, "token id 64 lies outside the model's vocabulary of 64");
  refused({"--lengths", "6"}, "--lengths: is for interventions on a text");
  refused({"--each-head"}, "--each-head and its like: is for interventions on a text");
  refused({"--set", "blocks.0.attn.hook_z=zero"}, "the value must be patch");
  refused({"--set", "blocks.0.hook_resid_pre[position=1]=patch"}, "it changes nothing at blocks.0.hook_resid_pre");
  refused({"--set", "blocks.0.hook_resid_pre[position=6]=patch"}, "position 6 is out of range");
  refused({"--set", "blocks.0.hook_mlp_out=patch", "--set", "blocks.0.hook_mlp_out=patch"}, "is asked for twice");
  expect_refused(run_gainlens({"intervene", llama, "--clean", clean_}), "--corrupt: is missing or empty");
  expect_refused(run_gainlens({"intervene", llama, "--tokens", clean_, "--lengths", "6", "--samples", "1", "--set",
                               "blocks.0.hook_mlp_out=patch"}),
                 "patch takes values from another prompt; give --clean and --corrupt");
  expect_refused(run_gainlens({"intervene", llama, "--tokens", clean_, "--set", "blocks.0.hook_mlp_out=zero"}),
                 "--lengths: is missing");
}

TEST_F(Patching, ARefusedRequestLeavesNothingBehind) {
  const std::string out = folder_.path() / "parent" / "run";
  expect_refused(call({"--set", "blocks.0.hook_resid_pre[position=1]=patch", "--out", out}), "changes nothing");
  EXPECT_FALSE(fs::exists(folder_.path() / "parent"));
}

}  // namespace intervene_patching_test
}  // namespace gainlens::testing
