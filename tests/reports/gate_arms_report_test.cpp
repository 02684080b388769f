// The words, figure and page of `gainlens gate-arms`.
#include "reports/gate_arms/gate_arms_report.h"
#include "core/json.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gainlens::reports {
namespace gate_arms_report_test {

using gainlens::testing::bytes_of;
using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// gain is equivalent at 1k and better at 2k; permuted is worse everywhere.
runfile::GateArmsRun gate_arms_run() {
  runfile::GateArmsRun run;
  run.arms = {"native", "constant", "gain", "permuted", "one"};
  run.contexts = {1024, 2048};
  run.trained_length = 1024;
  run.gated = true;
  run.calibration = {{0, 0, 0.9, 0.25, 2.0, 0.25, 1.0}, {0, 1, 0.7, 1.0, std::nullopt, std::nullopt, 1.0}};
  const double changes[5][2] = {{0, 0}, {0.02, 0.02}, {0.002, -0.03}, {0.05, 0.05}, {1, 1}};
  for (int i = 0; i < 5; ++i) {
    auto& arm = run.readings.emplace_back();
    for (int document = 0; document < 30; ++document) {
      const double noise = i == 0 ? 0 : 0.001 * ((document * (7 + i)) % 11 - 5);  // another one for each arm
      auto& readings = arm.emplace_back();
      for (const double one : changes[i]) readings.push_back({4 + 0.01 * document + one + noise, 0.5, 0.125, 9.5});
    }
  }
  return run;
}

TEST(GateArmsTerminal, SaysWhatHoldsAndWhatDoesNot) {
  const std::string text = print_gate_arms(analyses::gate_arm_effects(gate_arms_run(), 0), "everything");
  EXPECT_THAT(text, AllOf(HasSubstr("measured     everything\n"), HasSubstr("calibration  2 heads; mean gate 0.6250"),
                          HasSubstr("kept         1 head whose gate no lambda meets: 0.1\n"),
                          HasSubstr("gain      equivalent within ±0.01"), HasSubstr("permuted  worse "),
                          HasSubstr("      0.500     0.125    9.5\n"),
                          HasSubstr("prediction 3 (gain in the place of the gate): supported\n"),
                          HasSubstr("  - at 2048 tokens gain is better than constant (-0.0498, Holm's p")));
}

TEST(GateArmsTerminal, OneDocumentHasNoTest) {
  runfile::GateArmsRun run = gate_arms_run();
  for (auto& arm : run.readings) arm.resize(1);
  const std::string text = print_gate_arms(analyses::gate_arm_effects(run, 0), "everything");
  EXPECT_THAT(text, AllOf(HasSubstr("gain      not known  "),
                          HasSubstr("No 95% interval, detectable: a test over documents needs at least 2\n"),
                          ::testing::Not(HasSubstr("chunk"))));
}

/// One number, through its five forms: the change of gain at 2k, and its interval.
TEST(GateArmsReport, OneNumberHasTheSameDigitsWhereverItIsRead) {
  const TemporaryFolder folder;
  const analyses::GateArmEffects effects = analyses::gate_arm_effects(gate_arms_run(), 0);
  const analyses::ArmDifference& change = *effects.arms.at(2).contexts.at(1).to_native;
  const std::string digits = fmt::format("{:.4f}", change.mean), low = fmt::format("{:.4f}", change.interval->low),
                    high = fmt::format("{:.4f}", change.interval->high);
  ASSERT_EQ(digits, "-0.0299");
  write_gate_arms_report(effects, "everything", folder.path());
  EXPECT_THAT(print_gate_arms(effects, "everything"),
              ::testing::ContainsRegex("\ngain +2k +[0-9.]+ +" + digits + " +\\[" + low + ", " + high + "\\] "));
  const std::string minus = "−";
  EXPECT_THAT(bytes_of(folder.path() / "report.html"),
              HasSubstr("<td>" + minus + digits.substr(1) + "</td><td>[" + minus + low.substr(1) + ", " + minus +
                        high.substr(1) + "]</td>"));
  EXPECT_THAT(bytes_of(folder.path() / "tables/gate-arms-by-context.tex"),
              HasSubstr(" & $-$" + digits.substr(1) + " & {[}$-$" + low.substr(1) + ", $-$" + high.substr(1) + "] & "));
  // Programs read the full number, which rounds to what people read.
  EXPECT_THAT(bytes_of(folder.path() / "tables/gate-arms.csv"),
              HasSubstr(fmt::format(",{},{},{},", change.mean, change.interval->low, change.interval->high)));
  const Json read = read_json_file(folder.path() / "summary.json").at("gate_arms").at("arms").at(2);
  EXPECT_EQ(read.at("contexts").at(1).at("delta").get<double>(), change.mean);
  EXPECT_EQ(read.at("contexts").at(1).at("interval").at(0).get<double>(), change.interval->low);
  EXPECT_NE(fmt::format("{}", change.mean), digits);
  EXPECT_NEAR(std::stod(digits), change.mean, 0.5e-4);
}

TEST(GateArmsReport, HasAFigureATableAndASummary) {
  const TemporaryFolder folder;
  analyses::GateArmEffects effects = analyses::gate_arm_effects(gate_arms_run(), 0);
  const WrittenReport written = write_gate_arms_report(effects, "everything", folder.path() / "page");
  EXPECT_TRUE(written.left_out.empty());
  EXPECT_TRUE(written.failed.empty());
  EXPECT_THAT(bytes_of(folder.path() / "page/report.html"), HasSubstr("supported"));
  EXPECT_THAT(bytes_of(folder.path() / "page/gate-arms.svg"),
              AllOf(HasSubstr("permuted"), HasSubstr(">one<"), HasSubstr(">train<"), HasSubstr("(b)")));
  EXPECT_THAT(bytes_of(folder.path() / "page/report.html"),
              HasSubstr("one leaves the gates far from their scale: (b) has an axis of its own"));
  EXPECT_THAT(bytes_of(folder.path() / "page/summary.json"), HasSubstr("gate_arms"));
  EXPECT_THAT(bytes_of(folder.path() / "page/tables/gate-arms.csv"),
              AllOf(HasSubstr("arm,tokens,nll,delta,"), HasSubstr(",,,,,0.5,0.125,9.5\n"), HasSubstr("\none,2048,")));
  EXPECT_THAT(bytes_of(folder.path() / "page/tables/gate-arms-rulings.csv"),
              AllOf(HasSubstr("arm,at_trained_length,slope,slope_low,slope_high,slope_skewness\n"),
                    HasSubstr("\npermuted,worse,")));
  EXPECT_THAT(bytes_of(folder.path() / "page/tables/gate-arms-comparisons.csv"), HasSubstr("\nconstant,-0.0"));
  // Without raw and one there is one panel, without the others too.
  analyses::GateArmEffects few = effects;
  few.arms.pop_back();
  EXPECT_THAT(gate_arms_figure(few)->script, AllOf(HasSubstr("layout 1,1"), HasSubstr("from first 1024, graph 0")));
  few.arms = {effects.arms.front(), effects.arms.back()};
  EXPECT_THAT(gate_arms_figure(few)->script, HasSubstr("layout 1,1"));
  for (analyses::GateArmEffect& effect : effects.arms) effect.contexts.resize(1, effect.contexts.front());
  EXPECT_EQ(gate_arms_figure(effects).reason(), "there is one context");
}

}  // namespace gate_arms_report_test
}  // namespace gainlens::reports
