#include "language/train_tokenizer.h"

#include "core/error.h"
#include "core/sha256.h"
#include "language/language_testing.h"
#include "support/refusal.h"
#include "support/shared_data.h"
#include "tokenizers/tokenizer.h"

#include <sentencepiece_processor.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace gainlens::language {
namespace train_tokenizer_test {

using gainlens::testing::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(TrainTokenizer, KeepsEveryTextAsItIs) {
  const TemporaryFolder folder;
  const std::vector<std::string> texts = {testing::made_up_text(400), testing::made_up_text(100, 2)};
  write_tokenizer(train_tokenizer(texts, {.vocabulary = 320}), folder.path());
  const auto tokenizer = tokenizers::open_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->vocabulary_size(), 320);
  EXPECT_EQ(tokenizer->bos_token(), 1);
  EXPECT_TRUE(tokenizer->adds_bos());
  sentencepiece::SentencePieceProcessor processor;
  ASSERT_TRUE(processor.Load((folder.path() / "tokenizer.model").string()).ok());
  for (const std::string& text :
       {std::string("the river  carries\n\ttwo\nlines\n"), std::string("Größe 東京 \xF0\x9F\x8C\x8A"), texts[0]}) {
    const auto ids = tokenizer->encode(text);
    std::string back;
    ASSERT_TRUE(processor.Decode(std::vector<int>(ids.begin(), ids.end()), &back).ok());
    EXPECT_EQ(back, text);
  }
}

TEST(TrainTokenizer, GivesTheSameBytesForTheSameTexts) {
  const std::vector<std::string> texts = {testing::made_up_text(300)};
  const TokenizerRecipe recipe = {.vocabulary = 310, .algorithm = "unigram"};
  EXPECT_EQ(sha256_hex(train_tokenizer(texts, recipe)), sha256_hex(train_tokenizer(texts, recipe)));
}

TEST(TrainTokenizer, LearnsFromLinesOfAnyLength) {
  const TemporaryFolder folder;
  std::string line;
  while (line.size() < (std::size_t{3} << 20))
    line += "harbour \xC3\xA9 ";  // the line is cut twice; no cut may fall within a character
  const std::vector<std::string> texts = {testing::made_up_text(300) + line};
  write_tokenizer(train_tokenizer(texts, {.vocabulary = 330}), folder.path());
  EXPECT_EQ(tokenizers::open_tokenizer(folder.path())->encode("harbour").size(), 1u);
}

std::string refusal(const std::vector<std::string>& texts, std::int64_t pieces) {
  return testing::refusal_of([&] { train_tokenizer(texts, {.vocabulary = pieces}); });
}

/// The number that a message names after these words; 0: none.
std::int64_t number_in(const std::string& message, const std::string& words) {
  const std::size_t place = message.find(words);
  return place == std::string::npos ? 0 : std::atoll(message.c_str() + place + words.size());
}

TEST(TrainTokenizer, RefusesTooSmallATextAndWrongRecipes) {
  const std::vector<std::string> small = {"one line\n"}, none = {"\n\n"}, enough = {testing::made_up_text(300)};
  EXPECT_THAT(refusal(small, 2000), HasSubstr("and a vocabulary has at least 300; give more text"));
  EXPECT_THAT(refusal(enough, 100000), HasSubstr("give more text or fewer pieces"));
  EXPECT_NO_THROW(train_tokenizer(enough, {.vocabulary = number_in(refusal(enough, 100000), "it gives at most ")}));
  std::string alphabet;  // of 512 Greek and Cyrillic letters, more than the pieces
  for (int page = 0xCD; page < 0xD5; ++page) {
    for (int letter = 0x80; letter < 0xC0; ++letter) alphabet += {static_cast<char>(page), static_cast<char>(letter)};
    alphabet += " word\n";
  }
  EXPECT_THAT([&] { train_tokenizer(std::vector<std::string>{alphabet}, {.vocabulary = 320}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("take more pieces, or a smaller 'character_coverage'")));
  const std::vector<std::string> letters = {alphabet};
  const std::int64_t least = number_in(refusal(letters, 320), "take at least ");
  EXPECT_GT(least, 512);
  EXPECT_NO_THROW(train_tokenizer(letters, {.vocabulary = least}));
  EXPECT_THAT([&] { train_tokenizer(none, {}); }, ThrowsMessage<InvalidArgument>(HasSubstr("all lines are empty")));
  EXPECT_THROW(train_tokenizer(enough, {.vocabulary = 200}), InvalidArgument);
  EXPECT_THROW(train_tokenizer(enough, {.algorithm = "word"}), InvalidArgument);
  EXPECT_THROW(train_tokenizer(enough, {.character_coverage = 0.5}), InvalidArgument);
}

}  // namespace train_tokenizer_test
}  // namespace gainlens::language
