#include "reports/look/look_report.h"
#include "reports/terminal/look_terminal.h"
#include "support/shared_data.h"

#include "core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace gainlens::reports {
namespace look_report_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Two heads of one layer and three tokens, of which one would be markup and one an order to the terminal.
PromptLook small_look() {
  PromptLook look;
  look.tokens = {1, 7, 9};
  look.token_texts = {"<s>", "<script>alert(1)</script>", "\x1b[2J"};
  look.bos_policy = "BOS 1";
  look.top_count = 2;
  look.windows = {0};
  look.next = {{4, "</td><b>", 2.5, 0.75}, {5, "x", 1.25, 0.25}};
  for (std::int64_t head = 0; head < 2; ++head) {
    LookedHead& one = look.heads.emplace_back();
    one.layer = 3;
    one.head = head;
    one.n_eff = {1, 1.5, head == 0 ? 2.5F : nan};
    one.kalman_gain = {0.5, 0.625, 0.75};
    one.entropy = {0, 0.5, 1};
    one.bos_mass = {1, 0.75, 0.5};
    one.top_keys = {0, -1, 0, 1, 2, 0};
    one.top_weights = {1, nan, 0.75, 0.25, 0.5, 0.375};
    one.column_mean = one.key_mean = {0.75, 0.25, nan};
  }
  look.query = LookedQuery{3, 1, 2, {0.375, 0.125, 0.5}};
  look.lens = {{1, 3, {{4, "no", 1, 1}}, 0.5, 1, LensAnswer{9, -2.5, 0.0625}},
               {2, 3, {{4, "</td><b>", 2.5, 0.75}}, 0.5625, 0.25, LensAnswer{7, -1.5, 0.125}}};
  look.lens_answer = 6;
  look.lens_answer_text = "\x1b[1m";
  LogitParts& parts = look.parts.emplace();
  parts.answer = 4;
  parts.foil = 5;
  parts.difference = parts.linear = parts.sum = 1.25;
  parts.parts = {{"embedding", 1.0}, {"blocks.3.mlp", 0.25}};
  return look;
}

TEST(LookTerminal, ShowsWhatWasSeenAndNothingRaw) {
  const std::string text = print_look(small_look(), 2);
  EXPECT_THAT(text, HasSubstr("    3.0      2.50   0.750     1.00     0.500  2 '"));
  EXPECT_THAT(text, HasSubstr("    3.1         -   0.750"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "parts     of the logit of token 4 minus that of token 5, +1.2500 at the last token; they sum to +1.2500"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(
      text,
      HasSubstr("lens      the stream after each layer at query 2 '\\x1b[2J', read by the final norm and the "
                "output head\n  layer  entropy  KL to last     rank     logit        p  (of '\\x1b[1m')  most "
                "likely next tokens\n      3    0.562       0.250        7    -1.500   0.1250  '</td><b>' 0.750\n"));
  // The bars of head 3.1: weights .375, .125, .5.
  EXPECT_THAT(text, HasSubstr("|▆▂█|"));
}

TEST(LookReport, IsAPageWithTables) {
  const testing::TemporaryFolder folder;
  const PromptLook look = small_look();
  const WrittenReport written = write_look_report({&look, 2, "<i>model</i>"}, folder.path() / "page");
  EXPECT_TRUE(written.failed.empty());
  const std::string page = read_text_file(folder.path() / "page" / "report.html");
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("</td><b>")));
  EXPECT_THAT(page, Not(HasSubstr("<i>model")));
  EXPECT_THAT(page, HasSubstr("data-part=\"tokens\""));
  EXPECT_THAT(read_text_file(folder.path() / "page/tables/tokens.csv"), ::testing::StartsWith("position,id,token\n0,"));
  EXPECT_EQ(read_text_file(folder.path() / "page/tables/parts.csv"), "part,adds\nembedding,1\nblocks.3.mlp,0.25\n");
  EXPECT_EQ(read_text_file(folder.path() / "page/tables/lens.csv"),
            "position,layer,rank,id,token,logit,probability\n1,3,1,4,no,1,1\n2,3,1,4,</td><b>,2.5,0.75\n");
  EXPECT_EQ(read_text_file(folder.path() / "page/tables/lens-layers.csv"),
            "position,layer,entropy,kl_to_last,answer,answer_rank,answer_logit,answer_probability\n"
            "1,3,0.5,1,6,9,-2.5,0.0625\n"
            "2,3,0.5625,0.25,6,7,-1.5,0.125\n");
  EXPECT_EQ(read_text_file(folder.path() / "page/tables/keys.csv"), "position,mean_weight,heads\n0,0.75,2\n1,0.25,0\n");
}

TEST(LookReport, ALongPromptHasNoStripAndSaysSo) {
  const testing::TemporaryFolder folder;
  PromptLook look;
  look.top_count = 8;
  const std::size_t length = 2 + max_strip_numbers / 16;
  look.tokens.assign(length, 1);
  LookedHead& head = look.heads.emplace_back();
  head.n_eff = head.kalman_gain = head.entropy = head.bos_mass = head.column_mean = head.key_mean =
      std::vector<float>(length, 0.5F);
  head.top_keys.assign(8 * length, 0);
  head.top_weights.assign(8 * length, 0.5F);
  write_look_report({&look, 0, "model"}, folder.path());
  const std::string page = read_text_file(folder.path() / "report.html");
  EXPECT_THAT(page, HasSubstr("No strip of tokens"));
  EXPECT_THAT(page, Not(HasSubstr("data-part=\"tokens\"")));
  EXPECT_THAT(page, HasSubstr("more are in tables/tokens.csv"));
}

}  // namespace look_report_test
}  // namespace gainlens::reports
