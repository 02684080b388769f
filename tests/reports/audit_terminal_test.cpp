#include "reports/terminal/audit_terminal.h"

#include "analyses/synthetic_run.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace gainlens::reports {
namespace audit_terminal_test {

using ::testing::HasSubstr;
using ::testing::Not;

/// Four layers of four heads at one length; layer 2 has a head with mass 0.6 on key 0.
testing::SyntheticRun small_run() {
  testing::SyntheticRun run;
  run.lengths = {128};
  run.samples = 1;
  run.layers = 4;
  return run;
}

std::string printed(const testing::SyntheticRun& run, bool all_heads) {
  const testing::TemporaryFolder folder;
  return print_audit(analyses::audit(testing::write_run(folder.path(), run)), all_heads);
}

/// The number of lines that begin with a layer and a head.
std::size_t table_rows(const std::string& text) {
  std::istringstream lines(text);
  std::size_t rows = 0;
  for (std::string line; std::getline(lines, line);)
    rows += line.starts_with("    ") && line.find('%') != std::string::npos && line.size() > 90;
  return rows;
}

TEST(PrintAudit, StrongestAndMostNarrowlyMetHeads) {
  const std::string text = printed(small_run(), false);
  EXPECT_THAT(text, HasSubstr("Audit: means over chunks at 128"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "    2    0     0.15     0.8  0.62    0.29   0.120   0.600   0.480      0.47     0.0%    0.178  25.0%\n"));
  EXPECT_THAT(text, HasSubstr("(16 heads in all; --all prints every one)"));
  EXPECT_EQ(table_rows(text), 9u);  // 8, and the one head with a bound above 0
  EXPECT_LT(text.find("    2    0     0.15"), text.find("met most narrowly"));  // the strongest comes first
}

TEST(PrintAudit, EveryHeadOnRequest) {
  const std::string text = printed(small_run(), true);
  EXPECT_EQ(table_rows(text), 16u);
  EXPECT_THAT(text, Not(HasSubstr("--all")));
}

TEST(PrintAudit, AWindowThatHidesKey0IsMarked) {
  testing::SyntheticRun run = small_run();
  run.attention = {"window:16", "global", "global", "global"};
  EXPECT_THAT(printed(run, true), HasSubstr("window:16, excluded\n"));
  EXPECT_THAT(printed(run, false), Not(HasSubstr("window:16, excluded")));
}

TEST(PrintAudit, StatementsWithTheirOutcomes) {
  const std::string text = printed(small_run(), false);
  EXPECT_THAT(text, HasSubstr("1. false by algebra\n   Claim: With prior precision lambda = 1"));
  EXPECT_THAT(text, HasSubstr("8. not measured by a sweep\n"));
  EXPECT_THAT(text, HasSubstr("note: Norms are taken in head space"));
}

TEST(PrintAudit, LinesFitATerminal) {
  std::istringstream lines(printed(small_run(), true));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 110u) << line;
}

TEST(PrintAudit, ReasonsStandWhereNumbersAreMissing) {
  testing::SyntheticRun run = small_run();
  run.statistics = false;
  const std::string text = printed(run, false);
  EXPECT_THAT(text, HasSubstr("  none: the run has no summary/without_first_norm\n"));
  EXPECT_THAT(text, HasSubstr("Here: No numbers: the run has no summary/kalman_gain."));
}

}  // namespace audit_terminal_test
}  // namespace gainlens::reports
