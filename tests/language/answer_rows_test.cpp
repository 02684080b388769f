#include "language/answer_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gainlens::language {
namespace answer_rows_test {

using ::testing::ElementsAre;

/// A token for each character, and one (200) for ": x", which joins what stands on both sides of a prompt's end.
class Letters : public tokenizers::Tokenizer {
 public:
  std::vector<tokenizers::TokenId> encode_from(std::string_view text, std::size_t begin) const override {
    std::vector<tokenizers::TokenId> ids;
    for (std::size_t i = begin; i < text.size(); ++i) {
      const bool joins = text.substr(i, 3) == ": x";
      ids.push_back(joins ? 200 : static_cast<tokenizers::TokenId>(text[i]));
      i += joins ? 2 : 0;
    }
    return ids;
  }
  std::size_t last_cut(std::string_view, std::size_t begin) const override { return begin; }
  bool continues_at_cuts() const override { return false; }
  std::size_t longest_text() const override { return 100; }
  std::int64_t vocabulary_size() const override { return 201; }
  std::string token_text(tokenizers::TokenId) const override { return {}; }
  std::string token_bytes(tokenizers::TokenId) const override { return {}; }
  std::optional<tokenizers::TokenId> bos_token() const override { return 1; }
  bool adds_bos() const override { return true; }
  std::string description() const override { return "letters"; }
};

TEST(AnswerRow, HoldsPromptAnswerAndEnd) {
  const Letters letters;
  const AnswerRow row = answer_row({letters, 1, 2}, "a:", "b");
  EXPECT_THAT(row.ids, ElementsAre(1, 'a', ':', ' ', 'b', 2));
  EXPECT_EQ(row.first_answer, 3);
  EXPECT_FALSE(row.joined);
  EXPECT_THAT(prompt_tokens({letters, 1, 2}, "a:"), ElementsAre(1, 'a', ':'));
  EXPECT_THAT(prompt_tokens({letters, {}, 2}, "a:"), ElementsAre('a', ':'));
}

TEST(AnswerRow, IsEncodedInTwoPartsWhereATokenWouldJoinThem) {
  const Letters letters;
  const AnswerRow row = answer_row({letters, {}, 2}, "a:", "x");
  EXPECT_THAT(row.ids, ElementsAre('a', ':', ' ', 'x', 2));
  EXPECT_EQ(row.first_answer, 2);
  EXPECT_TRUE(row.joined);
}

TEST(AnswerIn, IsTheFirstLineWithoutSpaces) {
  EXPECT_EQ(answer_in(" Denver Broncos \nQuestion: "), "Denver Broncos");
  EXPECT_EQ(answer_in("\n\n yes"), "yes");
  EXPECT_EQ(answer_in("no\r\nmore"), "no");
  EXPECT_EQ(answer_in(" \n "), "");
  EXPECT_EQ(answer_in(""), "");
}

}  // namespace answer_rows_test
}  // namespace gainlens::language
