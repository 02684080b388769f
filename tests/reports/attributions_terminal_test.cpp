#include "reports/terminal/interventions_terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::reports {
namespace attributions_terminal_test {

using ::testing::HasSubstr;
using ::testing::Not;

/// Estimates 1 to `count`, the smallest first; every tenth was measured.
analyses::Attributions estimates_of(int count, bool prompts) {
  Attribution made;
  made.native = {2};
  for (int i = 1; i <= count; ++i) {
    made.interventions.push_back("place" + std::to_string(i));
    made.kinds.emplace_back(i % 2 == 0 ? "even=zero" : "odd=zero");
    made.acts.push_back(i > 2);
    made.estimates.push_back({static_cast<double>(i % 2 == 0 ? -i : i)});
    if (i % 10 == 0) made.exact.push_back({static_cast<std::size_t>(i - 1), {static_cast<double>(-i)}});
  }
  if (prompts) made.other = 4;
  return analyses::attributions(made);
}

TEST(AttributionsTerminal, ShowsTheLargestFirst) {
  const std::string text = print_attributions(estimates_of(50, true), "logit of ' a' minus logit of ' b'");
  EXPECT_THAT(text, HasSubstr("estimated 50 interventions by one backward pass of the document"));
  EXPECT_THAT(text, HasSubstr("even=zero             25       24      5  +1.000"));
  EXPECT_THAT(text, HasSubstr("odd=zero              25       24      0  none (fewer than 3 interventions"));
  EXPECT_THAT(text, HasSubstr("patched run 2.0000, other run 4.0000: logit of ' a' minus logit of ' b'"));
  EXPECT_THAT(text, HasSubstr("place50         -50.0000   -25.000    -50.0000   -25.000\n"
                              "place49         +49.0000   +24.500"));
  EXPECT_THAT(text, HasSubstr("10 with smaller estimates are left out; --json and --out FILE.csv have all."));
  EXPECT_THAT(text, Not(HasSubstr("place10 ")));
}

TEST(AttributionsTerminal, ShowsIntervalsOfATextAndNoShares) {
  const std::string text = print_attributions(estimates_of(3, false), "mean loss");
  EXPECT_THAT(text, HasSubstr("native    2.0000: mean loss"));
  EXPECT_THAT(text, Not(HasSubstr("share")));
  EXPECT_THAT(text, Not(HasSubstr("left out")));
}

TEST(AttributionsTerminal, TheTableHasAll) {
  const NamedAttributions both[] = {{"denoising", estimates_of(50, true)}, {"noising", estimates_of(50, true)}};
  const std::string csv = to_csv(attributions_table(both));
  EXPECT_THAT(csv, HasSubstr("direction,intervention,kind,can_act,estimate,"));
  EXPECT_THAT(csv, HasSubstr("\ndenoising,place1,odd=zero,0,1,,,0.5,,\n"));
  EXPECT_THAT(csv, HasSubstr("\nnoising,place10,even=zero,1,-10,,,-5,-10,-5\n"));
}

}  // namespace attributions_terminal_test
}  // namespace gainlens::reports
