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
namespace gate_arms_command_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string models = GAINLENS_SOURCE_DIR "/tests/golden/models/";
const std::string gated = models + "qwen3-gate-headwise";

class GateArmsCommand : public ::testing::Test {
 protected:
  /// Ids that repeat neither within a file nor between files of different `step`.
  std::string ids(int step, int count = 200) const {
    std::string text = "[";
    for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + std::to_string(3 + (i * step + i * i / 7) % 58);
    return write_file(folder_.path() / ("ids-" + std::to_string(step) + ".json"), text + "]");
  }
  ProgramResult call(const std::vector<std::string>& more, const std::string& model = gated) const {
    std::vector<std::string> words = {"gate-arms", model, "--tokens", ids(13), "--trained-length", "16", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }
  std::vector<std::string> small(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"--calibration",   ids(29),      "--targets", "4",         "--samples", "3",
                                      "--few-documents", "--contexts", "8,16,32",   "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Json json_of(std::vector<std::string> more, const std::string& model = gated) const {
    more.emplace_back("--json");
    const ProgramResult result = call(more, model);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return Json::parse(result.out);
  }
  void refused(const std::vector<std::string>& more, const std::string& reason,
               const std::string& model = gated) const {
    expect_refused(call(more, model), reason);
  }

  TemporaryFolder folder_;
};

TEST_F(GateArmsCommand, PrintsWhatOtherProgramsRead) {
  const Json json = json_of(small());
  ASSERT_EQ(json.at("arms").size(), 9u);
  EXPECT_EQ(json.at("documents"), 3);
  EXPECT_EQ(json.at("arms").at(0).at("arm"), "native");
  for (const Json& arm : json.at("arms")) {
    ASSERT_EQ(arm.at("contexts").size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      const Json& context = arm.at("contexts").at(i);
      EXPECT_GT(context.at("nll").get<double>(), 0);
      EXPECT_GT(context.at("n_eff").get<double>(), 1);
      if (arm.at("arm") == "native") continue;
      const double native = json.at("arms").at(0).at("contexts").at(i).at("nll");
      EXPECT_NEAR(context.at("delta").get<double>(), context.at("nll").get<double>() - native, 1e-12);
    }
  }
  EXPECT_EQ(json.at("arms").at(8).at("arm"), "one");
  EXPECT_EQ(json.at("arms").at(8).at("contexts").at(0).at("gate_mean"), 1);
  EXPECT_EQ(json.at("judged"), "gain");
  EXPECT_EQ(json.at("calibration").at("heads"), 8);
  EXPECT_EQ(json.at("declared").at("margin"), 0.01);
}

TEST_F(GateArmsCommand, TheTableEndsWithTheRuling) {
  const ProgramResult result = call(small());
  EXPECT_EQ(result.exit_code, 0) << result.error;
  for (const char* part :
       {"measured     the last 4 tokens of 3 documents; no BOS", "calibration  8 heads", "lambda  ", "slope on ln T",
        "mean gate  BOS mass  n_eff", "change that so many documents show with 80% power",
        "prediction 3 (gain in the place of the gate): "})
    EXPECT_THAT(result.out, HasSubstr(part));
}

TEST_F(GateArmsCommand, ModelsWithoutGatesAreModulated) {
  const Json json = json_of(small(), models + "llama");
  ASSERT_EQ(json.at("arms").size(), 4u);
  EXPECT_EQ(json.at("judged"), "modulated");
  EXPECT_EQ(json.at("arms").at(0).at("contexts").at(0).at("gate_mean"), 1);
  EXPECT_THAT(call(small(), models + "llama").out, HasSubstr("prediction 3, read without gates (modulated): "));
}

TEST_F(GateArmsCommand, ElementwiseGatesAndFewArms) {
  const Json json = json_of(small({"--arms", "raw,gain"}), models + "qwen3-gate-elementwise");
  ASSERT_EQ(json.at("arms").size(), 3u);
  EXPECT_EQ(json.at("arms").at(1).at("arm"), "gain");
  EXPECT_EQ(json.at("ruling"), "not judged");
}

TEST_F(GateArmsCommand, ARunIsKeptContinuedAndPrintedAgain) {
  const std::string out = folder_.path() / "run";
  const std::vector<std::string> words = small({"--out", out});
  const Json first = json_of(words);
  const std::string bytes = bytes_of(out + "/gate-arms.json");
  EXPECT_EQ(json_of(words), first);
  fs::remove(out + "/units/document-1-gain.json");
  fs::remove(out + "/units/document-2-position.json");
  fs::remove(out + "/gate-arms.json");
  EXPECT_EQ(json_of(words), first);
  EXPECT_EQ(bytes_of(out + "/gate-arms.json"), bytes);
  fs::remove(out + "/units/calibration.json");
  EXPECT_EQ(json_of(words), first);

  refused(small({"--out", out, "--arms", "gain"}), "holds a run with other arms; give a new folder");
  refused(small({"--out", out, "--seed", "4"}), "holds a run with other seed; give a new folder");
  const std::string unit = out + "/units/document-2-one.json";
  write_file(unit, "[]");  // as older versions wrote it, without a checksum
  refused(words, "document-2-one.json: has no checksum, as units of older versions; delete " + out + "/units and");
  write_file(unit, bytes_of(out + "/units/document-1-one.json"));
  refused(words, "document-2-one.json: is damaged (it is not what was written, or that of another run); delete it and");
  const ProgramResult checked = run_gainlens({"check", out});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.out, HasSubstr("1 of 28 units cannot be used"));
  fs::remove(unit);
  EXPECT_EQ(json_of(words), first);
  EXPECT_THAT(run_gainlens({"check", out}).out, HasSubstr("gate-arms.json holds what the units hold"));

  refused(small({"--out", out, "--report", out}), "is the folder of a run; choose another folder");
  EXPECT_EQ(call(small({"--out", out, "--report", folder_.path() / "page"})).exit_code, 0);
  EXPECT_TRUE(fs::exists(folder_.path() / "page" / "gate-arms.svg"));

  expect_checksums(out, "gate-arms.json", false);

  // `report` makes the same page of the kept run.
  EXPECT_EQ(run_gainlens({"report", out, "--out", folder_.path() / "again"}).exit_code, 0);
  for (const char* file : {"report.html", "summary.json", "tables/gate-arms.csv"})
    EXPECT_EQ(bytes_of(folder_.path() / "again" / file), bytes_of(folder_.path() / "page" / file)) << file;

  const std::string passed_on = folder_.path() / "passed-on";
  fs::copy(out, passed_on, fs::copy_options::recursive);
  fs::remove(passed_on + "/manifest.jsonl");
  EXPECT_THAT(run_gainlens({"report", passed_on, "--out", folder_.path() / "unproven"}).error,
              HasSubstr("gate-arms.json has no checksum beside it; what it holds is not proven."));

  const ProgramResult inspected = run_gainlens({"inspect", out});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.error;
  EXPECT_THAT(inspected.out, HasSubstr("run of arms for gates"));
  EXPECT_THAT(inspected.out, HasSubstr("8, 16, 32 tokens; trained with 16"));
  fs::remove(out + "/gate-arms.json");
  fs::remove(out + "/units/document-1-gain.json");
  EXPECT_THAT(run_gainlens({"inspect", out}).out,
              HasSubstr("27 of 28 parts (each arm on each document, and the calibration) are measured; repeat the "));
}

TEST_F(GateArmsCommand, WrongRequestsGetOneLine) {
  const auto changed = [&](const std::string& option, const std::string& value) {
    std::vector<std::string> words = small();
    *(std::find(words.begin(), words.end(), option) + 1) = value;
    return words;
  };
  refused({"--calibration", ids(29), "--targets", "4", "--contexts", "8,16,32"},
          "the text has 200 tokens, but 30 samples");
  refused({"--samples", "3"}, "--samples: 3 documents; the plan declares 30 or more");
  refused({"--samples", "30"}, "--calibration: missing");
  refused(changed("--calibration", ids(13)), "tokens in a row in common");
  refused(changed("--calibration", ids(31, 50)), "--calibration: chunks: the text has 50");
  refused(changed("--contexts", "8,32"), "--contexts: must hold the trained length, 16");
  refused(changed("--targets", "8"), "--targets: 8; must be from 1 to 7");
  refused(changed("--samples", "0"), "at least 1 of each is needed");
  refused(small({"--arms", "gian"}), "did you mean 'gain'?");
  refused(small({"--arms", "native"}), "native alone");
  refused(small({"--arms", "gain"}), "takes the place of a gate, and the model has none", models + "llama");
  refused(changed("--contexts", "16,256"), "the longest context has 256 tokens", models + "gpt2");
  refused(small(), "no such", models + "nothing");
}

TEST_F(GateArmsCommand, LinearAttentionStaysAsItIs) {
  const ProgramResult result = run_gainlens(
      {"gate-arms", models + "qwen3-next", "--tokens", ids(13), "--trained-length", "16", "--contexts", "16,32",
       "--targets", "4", "--samples", "2", "--few-documents", "--calibration", ids(29), "--arms", "gain"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr("layers have linear attention (the gated delta rule): they stay as they are"));
}

}  // namespace gate_arms_command_test
}  // namespace gainlens::testing
