#include "reports/terminal/look_terminal.h"

#include "core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace gainlens::reports {
namespace look_terminal_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// `length` tokens "a", and heads that look at key 0 with a weight of 0.5.
PromptLook look_of(std::int64_t length, std::int64_t heads = 1) {
  PromptLook look;
  look.bos_policy = "no BOS";
  look.top_count = 2;
  const auto count = static_cast<std::size_t>(length);
  look.tokens.assign(count, 3);
  look.token_texts.assign(count, "a");
  look.next = {{4, "b", 1.5, 0.25}};
  for (std::int64_t i = 0; i < heads; ++i) {
    LookedHead head{{0, i}};
    head.n_eff.assign(count, static_cast<float>(heads - i));
    head.kalman_gain = head.entropy = head.bos_mass = std::vector<float>(count, 0.5F);
    head.column_mean.assign(count, 0.1F);
    head.column_mean[0] = 0.4F;
    head.key_mean = head.column_mean;
    for (std::int64_t query = 0; query < length; ++query) {
      head.top_keys.insert(head.top_keys.end(), {0, query == 0 ? -1 : 1});
      head.top_weights.insert(head.top_weights.end(), {0.5F, query == 0 ? nan : 0.25F});
    }
    look.heads.push_back(head);
  }
  return look;
}

std::string json_of(const PromptLook& look) {
  std::string text;
  write_look_json(look, [&](std::string_view part) { text += part; });
  return text;
}

TEST(LookTerminal, TheLineForPrograms) {
  EXPECT_EQ(json_of(look_of(2)),
            R"({"tokens":[3,3],"next":[{"id":4,"logit":1.5,"probability":0.25}],"heads":[{"layer":0,"head":0,)"
            R"("n_eff":[1,1],"kalman_gain":[0.5,0.5],"entropy":[0.5,0.5],"bos_mass":[0.5,0.5],)"
            R"("top_keys":[[[0,0.5]],[[0,0.5],[1,0.25]]],"column_mean":[0.4,0.1]}]})"
            "\n");
}

TEST(LookTerminal, WhatDoesNotExistIsNull) {
  PromptLook look = look_of(1);
  look.heads[0].n_eff[0] = look.heads[0].column_mean[0] = nan;
  const Json head = Json::parse(json_of(look)).at("heads").at(0);
  EXPECT_EQ(head.at("n_eff").dump(), "[null]");
  EXPECT_EQ(head.at("column_mean").dump(), "[null]");
  EXPECT_THAT(print_look(look, 0), HasSubstr("    0.0         -   0.500"));
}

TEST(LookTerminal, ALongPromptIsCutInItsMiddle) {
  const std::string text = print_look(look_of(100), 99);
  EXPECT_THAT(text, HasSubstr(" 15 'a'\n          .. 36 tokens more\n"));
  EXPECT_THAT(text, HasSubstr(" 52 'a'  "));
  EXPECT_THAT(text, Not(HasSubstr(" 16 'a'")));
  EXPECT_THAT(text, Not(HasSubstr(" 51 'a'")));
  EXPECT_THAT(print_look(look_of(64), 0), Not(HasSubstr(" tokens more")));
}

TEST(LookTerminal, OfManyHeadsThoseWithTheSmallestNEff) {
  PromptLook look = look_of(1, 162);
  look.heads[161].n_eff[0] = nan;
  const std::string text = print_look(look, 0);
  EXPECT_THAT(text, HasSubstr("at query 0 'a'; the 160 of 162 with the smallest n_eff"));
  EXPECT_THAT(text, Not(HasSubstr("  0.0  ")));
  EXPECT_THAT(text, Not(HasSubstr("  0.161  ")));
}

TEST(LookTerminal, KeysThatQueriesLookAt) {
  PromptLook look = look_of(8, 2);
  look.heads[1].key_mean[0] = 0.2F;
  look.heads[0].key_mean[7] = 1;  // of the last query alone
  const auto keys = sink_keys(look);
  ASSERT_EQ(keys.size(), 6u);
  EXPECT_EQ(keys[0].position, 0);
  EXPECT_NEAR(keys[0].mean, 0.3, 1e-6);
  EXPECT_EQ(keys[0].heads, 1);
  EXPECT_EQ(keys[1].position, 1);
  EXPECT_EQ(sink_keys(look, 2).size(), 2u);
  EXPECT_EQ(sink_keys(look_of(7)).size(), 7u);
}

TEST(LookTerminal, TheStripLeavesEmptyLinesOutAndSaysSo) {
  PromptLook look = look_of(200);
  look.query = LookedQuery{0, 0, 199, std::vector<double>(200, 0)};
  look.query->weights[0] = 0.5;
  look.query->weights[130] = 0.25;
  const std::string text = print_look(look, 199);
  EXPECT_THAT(text, HasSubstr("head 0.0 at query 199 'a': the weight of each key (a full bar is 0.500; lines without a "
                              "bar are left out)\n      0  |█ "));
  EXPECT_THAT(text, HasSubstr("\n    128  |  ▄ "));
  EXPECT_THAT(text, Not(HasSubstr("\n     64  |")));
}

TEST(LookTerminal, PartsSayWhyTheyMiss) {
  PromptLook look = look_of(1);
  look.parts = LogitParts{.answer = 3,
                          .foil = 4,
                          .answer_text = "\x1b[2J",
                          .difference = 1,
                          .linear = 2,
                          .parts = {{"embedding", -0.5}, {"blocks.0.mlp", 2.5}},
                          .sum = 2,
                          .missed = "why",
                          .divided = "because"};
  EXPECT_THAT(
      print_look(look, 0),
      HasSubstr("parts     of the logit of '\\x1b[2J' minus that of token 4, +1.0000 at the last token; they sum "
                "to +2.0000\n          not the same: why\n          heads have no parts of their own: "
                "because\n  +2.5000  blocks.0.mlp\n  -0.5000  embedding\n"));
  EXPECT_THAT(json_of(look),
              HasSubstr(R"("before_soft_cap":2.0,"sum":2.0,"sum_reason":"why","heads_reason":"because")"));
  look.parts->missed = look.parts->divided = "";
  EXPECT_THAT(json_of(look), Not(HasSubstr("reason")));
}

}  // namespace look_terminal_test
}  // namespace gainlens::reports
