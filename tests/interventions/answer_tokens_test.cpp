#include "interventions/answer_tokens.h"

#include "core/error.h"
#include "support/refusal.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

namespace gainlens::interventions {
namespace answer_tokens_test {

using gainlens::testing::refusal_of;
using ::testing::HasSubstr;

class AnswerTokens : public ::testing::Test {
 protected:
  std::string refusal(const std::string& text) const {
    return refusal_of([&] { token_of(text, tokenizer_.get(), vocabulary_, "--answer"); });
  }
  std::unique_ptr<tokenizers::Tokenizer> tokenizer_ =
      tokenizers::open_tokenizer(GAINLENS_SOURCE_DIR "/data/demo/gated");
  std::int64_t vocabulary_ = tokenizer_->vocabulary_size();
};

TEST_F(AnswerTokens, AreTextsOrIds) {
  const tokenizers::TokenId the = tokenizer_->encode("the").front();
  EXPECT_EQ(token_of("the", tokenizer_.get(), vocabulary_, "--answer"), the);
  EXPECT_EQ(token_of("text:the", tokenizer_.get(), vocabulary_, "--answer"), the);
  EXPECT_EQ(token_of("id:17", tokenizer_.get(), vocabulary_, "--answer"), 17);
  EXPECT_EQ(token_of("17", nullptr, 20, "--answer"), 17);
  const AnswerPair pair = answer_pair("the", "id:17", tokenizer_.get(), vocabulary_);
  EXPECT_EQ(pair.answer, the);
  EXPECT_EQ(pair.foil, 17);
  EXPECT_EQ(answer_request(pair, tokenizer_.get()).at("texts").at(0), shown_token(the, tokenizer_.get()));
}

TEST_F(AnswerTokens, WrongOnesAreRefused) {
  EXPECT_THAT(refusal("the man"), HasSubstr("--answer: 'the man' is 2 tokens ("));
  EXPECT_THAT(refusal(" the"), HasSubstr("; 'the' is one token, "));
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
  EXPECT_EQ(refusal("a\xff"), "--answer: 'a\\xff' is not UTF-8 at byte 1");
  EXPECT_THAT(refusal("id:x"), HasSubstr("after id: must stand a token id"));
  EXPECT_THAT(refusal("id:99999999"), HasSubstr("lies outside the model's vocabulary"));
  EXPECT_THAT(refusal_of([&] { token_of("the", nullptr, 20, "--foil"); }),
              HasSubstr("there is no tokenizer; give an id"));
  EXPECT_THAT(refusal_of([&] { answer_pair("3", "id:3", nullptr, 20); }),
              HasSubstr("--foil: is the token of --answer"));
}

/// "5" may mean two tokens.
TEST_F(AnswerTokens, ANumberThatIsATextTooIsRefused) {
  int texts = 0;
  for (int digit = 0; digit < 10; ++digit) {
    const std::string text = std::to_string(digit);
    if (tokenizer_->encode(text).size() != 1) continue;
    ++texts;
    EXPECT_THAT(refusal(text), HasSubstr("write id:" + text + " or text:" + text));
  }
  if (texts > 0) return;
  EXPECT_EQ(token_of("5", tokenizer_.get(), vocabulary_, "--answer"), 5);
}

TEST(Question, AsksForADifferenceOrADivergence) {
  const at::Tensor logits = at::tensor({1.0, 3.0, -2.0}, at::kDouble);
  EXPECT_EQ(answer_to({.pair = AnswerPair{1, 2}, .reference = {}}, logits), 5);
  EXPECT_FALSE(Question{}.any());
  // p = (1/2, 1/4, 1/4), q uniform: KL = log 3 - 1.5 log 2
  const at::Tensor p = at::tensor({0.5, 0.25, 0.25}, at::kDouble).log();
  EXPECT_NEAR(answer_to({.pair = {}, .reference = p}, at::full({3}, 7.0, at::kDouble)), std::log(3) - 1.5 * std::log(2),
              1e-12);
}

}  // namespace answer_tokens_test
}  // namespace gainlens::interventions
