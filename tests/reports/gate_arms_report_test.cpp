// The words, figure and page of `gainlens gate-arms`.
#include "reports/gate_arms/gate_arms_report.h"
#include "reports/terminal/gate_arms_terminal.h"
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
                          HasSubstr("gain         equivalent within ±0.01"), HasSubstr("permuted     worse "),
                          HasSubstr("0.500 / 0.125 / 9.5"),
                          HasSubstr("prediction 3 (gain in the place of the gate): supported\n"),
                          HasSubstr("  - at 2048 tokens gain is better than constant (-0.0498, Holm's p")));
}

TEST(GateArmsTerminal, OneDocumentHasNoTest) {
  runfile::GateArmsRun run = gate_arms_run();
  for (auto& arm : run.readings) arm.resize(1);
  const std::string text = print_gate_arms(analyses::gate_arm_effects(run, 0), "everything");
  EXPECT_THAT(text, AllOf(HasSubstr("gain         not known  "),
                          HasSubstr("power     not known: a test over documents needs at least 2\n"),
                          ::testing::Not(HasSubstr("chunk"))));
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
