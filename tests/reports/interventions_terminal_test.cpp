#include "reports/terminal/interventions_terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::reports {
namespace interventions_terminal_test {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

analyses::InterventionEffects effects_of(int arms) {
  analyses::InterventionEffects effects{2, 3.25, {}};
  for (int i = 0; i < arms; ++i) {
    const std::string name = "blocks." + std::to_string(i) + ".hook_mlp_out=zero";
    effects.arms.push_back(
        {{name, 3.5, 0.01 * i, analyses::Interval{-0.125, 0.25}, 12, 0, 1.0 + i, 2}, std::nullopt, "why"});
  }
  return effects;
}

TEST(InterventionsTerminal, BeginsWithWhatChanged) {
  const std::string text = print_interventions(effects_of(1), "2 documents");
  EXPECT_THAT(text, StartsWith("acted     1 intervention changed its site and the logits (the least by 1);"));
  EXPECT_THAT(text, HasSubstr("\nnative    3.2500 nats per token; 2 documents\n"));
  EXPECT_THAT(text, HasSubstr("[-0.1250, +0.2500]"));
  EXPECT_THAT(text, Not(HasSubstr("The loss grows most")));
  analyses::InterventionEffects effects = effects_of(1);
  effects.arms[0].control = effects.arms[0].arm;
  effects.arms[0].control->intervention = "blocks.0.attn.hook_z[head=3]=zero + blocks.0.attn.hook_z[head=15]=zero";
  EXPECT_THAT(print_interventions(effects, ""), HasSubstr("+0.0000 (3, 15)\n"));
}

TEST(InterventionsTerminal, NamesTheWorstOfMany) {
  const std::string text = print_interventions(effects_of(11), "");
  EXPECT_THAT(text, HasSubstr("The loss grows most with\n  +0.1000  blocks.10.hook_mlp_out=zero\n  +0.0900  "));
  EXPECT_THAT(text, Not(HasSubstr("  +0.0500  blocks.5.hook_mlp_out=zero\n")));
}

TEST(InterventionsTerminal, NamesWhatChangesNothing) {
  analyses::InterventionEffects effects = effects_of(2);
  effects.arms[0].arm.documents_changed = 0;
  effects.arms[0].arm.interval = analyses::Maybe<analyses::Interval>::none("it changes nothing");
  effects.arms[1].control = effects.arms[0].arm;
  std::string text = print_interventions(effects, "");
  EXPECT_THAT(text, StartsWith("acted     1 of 2 interventions changed its site and the logits (the least by 2);"));
  EXPECT_THAT(text, HasSubstr("\n          1 changes nothing: blocks.0.hook_mlp_out=zero\n"));
  EXPECT_THAT(text, HasSubstr("\n          1 control changes nothing: blocks.0.hook_mlp_out=zero\n"));
  EXPECT_THAT(text, HasSubstr("     changes nothing  "));
  EXPECT_THAT(text, Not(HasSubstr("No interval")));
  effects.arms.pop_back();  // "the least by inf" was printed
  EXPECT_THAT(print_interventions(effects, ""), StartsWith("acted     0 of 1 intervention changed their site and the "
                                                           "logits; nothing before"));
  effects = effects_of(2);
  effects.arms[0].arm.documents_changed = 1;
  text = print_interventions(effects, "");
  EXPECT_THAT(text, HasSubstr("\n          1 changes nothing in some documents: blocks.0.hook_mlp_out=zero\n"));
}

TEST(InterventionsTerminal, ShowsLongNamesWhole) {
  analyses::InterventionEffects effects = effects_of(1);
  const std::string name = "blocks.0.hook_resid_pre=" + std::string(300, 'x') + "/patch.safetensors";
  effects.arms[0].arm.intervention = name;
  EXPECT_THAT(print_interventions(effects, ""), HasSubstr(name + "\n" + std::string(48, ' ') + "  "));
}

TEST(InterventionsTerminal, SaysWhyAnIntervalIsMissing) {
  analyses::InterventionEffects effects = effects_of(2);
  effects.arms[1].arm.interval = analyses::Maybe<analyses::Interval>::none("one document");
  EXPECT_THAT(print_interventions(effects, ""), HasSubstr("No interval: one document.\n"));
}

}  // namespace interventions_terminal_test
}  // namespace gainlens::reports
