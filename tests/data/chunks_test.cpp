#include "data/chunks.h"

#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace gainlens::data {
namespace chunks_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<tokenizers::TokenId> count_to(int size) {
  std::vector<tokenizers::TokenId> tokens(static_cast<std::size_t>(size));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

std::vector<std::vector<tokenizers::TokenId>> tokens_of(const std::vector<Chunk>& chunks) {
  std::vector<std::vector<tokenizers::TokenId>> all;
  for (const Chunk& chunk : chunks) {
    EXPECT_EQ(chunk.tokens.size(), static_cast<std::size_t>(chunk.length));
    all.push_back(chunk.tokens);
  }
  return all;
}

using Rows = std::vector<std::vector<tokenizers::TokenId>>;

TEST(Chunks, FollowEachOtherWithoutBos) {
  const auto chunks = cut(count_to(6), {.lengths = {2, 3}, .samples = 2});
  EXPECT_EQ(tokens_of(chunks), (Rows{{0, 1}, {2, 3}, {0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(chunks[3].length, 3);
  EXPECT_EQ(chunks[3].sample, 1);
}

TEST(Chunks, BosTakesPositionZeroAndTheStrideIsOneLess) {
  EXPECT_EQ(tokens_of(cut(count_to(4), {.lengths = {3}, .samples = 2, .bos = 9})), (Rows{{9, 0, 1}, {9, 2, 3}}));
}

TEST(Chunks, NestedOnesAreHeadsOfTheLongest) {
  EXPECT_EQ(tokens_of(cut(count_to(8), {.lengths = {2, 4}, .samples = 2, .nested = true})),
            (Rows{{0, 1}, {4, 5}, {0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(tokens_of(cut(count_to(6), {.lengths = {2, 4}, .samples = 2, .nested = true, .bos = 9})),
            (Rows{{9, 0}, {9, 3}, {9, 0, 1, 2}, {9, 3, 4, 5}}));
}

TEST(Chunks, SpreadOnesLieEvenlyOverTheWholeText) {
  // 12 tokens in two parts with middles 3 and 9
  EXPECT_EQ(tokens_of(cut(count_to(12), {.lengths = {2, 4}, .samples = 2, .spread = true})),
            (Rows{{2, 3}, {8, 9}, {1, 2, 3, 4}, {7, 8, 9, 10}}));
  EXPECT_THAT(
      [&] {
        cut(count_to(6), {.lengths = {2, 4}, .samples = 2, .nested = true, .spread = true});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("2 samples of length 4 (nested) (spread) need 8")));
  EXPECT_EQ(tokens_of(cut(count_to(12), {.lengths = {2, 4}, .samples = 2, .nested = true, .spread = true})),
            (Rows{{1, 2}, {7, 8}, {1, 2, 3, 4}, {7, 8, 9, 10}}));
  EXPECT_EQ(tokens_of(cut(count_to(12), {.lengths = {5}, .samples = 1, .spread = true, .bos = 99})),
            (Rows{{99, 4, 5, 6, 7}}));
}

TEST(Chunks, ATextTooShortToSpreadIsRefused) {
  EXPECT_EQ(tokens_of(cut(count_to(6), {.lengths = {3}, .samples = 2, .spread = true})), (Rows{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_THAT(
      [] { cut(count_to(5), {.lengths = {3}, .samples = 2, .spread = true}); },
      ThrowsMessage<InvalidArgument>(HasSubstr("the text has 5 tokens, but 2 samples of length 3 (spread) need 6")));
}

TEST(Chunks, ATextTooShortIsToldWhatFits) {
  const auto refused = [](std::int64_t tokens, const ChunkPlan& plan, const char* message) {
    EXPECT_THAT([&] { cut(count_to(tokens), plan); }, ThrowsMessage<InvalidArgument>(HasSubstr(message)));
  };
  refused(5, {.lengths = {8}, .samples = 1, .bos = 9},
          "the text has 5 tokens, but 1 sample of length 8 needs 7; give a longer text or --lengths of at most 6");
  refused(5, {.lengths = {2, 8}, .samples = 2},
          "2 samples of length 8 need 16; give a longer text or --lengths of at most 2");
  refused(17, {.lengths = {2, 8}, .samples = 3},
          "3 samples of length 8 need 24; give a longer text or --samples of at most 2 or --lengths of at most 5");
  refused(6, {.lengths = {2, 8}, .samples = 2, .nested = true}, "--lengths of at most 3");
  refused(1, {.lengths = {8}, .samples = 9}, "9 samples of length 8 need 72; give a longer text");
  refused(9, {.lengths = {3, 5}, .samples = 4, .nested = true},
          "4 samples of length 5 (nested) need 18; give a longer text or --samples of at most 1 or --lengths of at "
          "most 2");
  EXPECT_EQ(cut(count_to(17), {.lengths = {2, 8}, .samples = 2}).size(), 4u);
  EXPECT_EQ(cut(count_to(17), {.lengths = {2, 5}, .samples = 3}).size(), 6u);
  EXPECT_EQ(cut(count_to(5), {.lengths = {6}, .samples = 1, .bos = 9}).size(), 1u);
}

TEST(Chunks, EachCommandGivesItsOwnAdvice) {
  const ChunkAdvice advice{.samples = [](std::int64_t most) { return "--documents " + std::to_string(most); },
                           .lengths = [](std::int64_t) { return std::string(); }};
  EXPECT_THAT([&] { cut(count_to(17), {.lengths = {8}, .samples = 3, .advice = advice}); },
              ThrowsMessage<InvalidArgument>(EndsWith("need 24; give a longer text or --documents 2")));
}

TEST(Chunks, ExactlyEnoughIsEnough) {
  EXPECT_EQ(cut(count_to(6), {.lengths = {3}, .samples = 2}).size(), 2u);
  EXPECT_THAT([] { cut(count_to(5), {.lengths = {3}, .samples = 2}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the text has 5 tokens, but 2 samples of length 3 need 6")));
  EXPECT_THAT([] { cut(count_to(3), {.lengths = {3}, .samples = 2, .bos = 9}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("has 3 tokens, but 2 samples of length 3 need 4")));
}

TEST(Chunks, WrongPlansAreRefused) {
  const auto refused = [](ChunkPlan plan, const std::string& message) {
    EXPECT_THAT([&] { cut(count_to(9), plan); }, ThrowsMessage<InvalidArgument>(HasSubstr(message)));
  };
  refused({.lengths = {}}, "no context length");
  refused({.lengths = {0}}, "context length 0; at least 1");
  refused({.lengths = {1}, .bos = 1}, "context length 1; at least 2");
  refused({.lengths = {2}, .samples = 0}, "0 samples");
  refused({.lengths = {3, 2}}, "2 after 3");
  refused({.lengths = {INT64_MAX}, .samples = INT64_MAX}, "too large");
}

class Fake : public tokenizers::Tokenizer {
 public:
  Fake(std::optional<tokenizers::TokenId> bos, bool adds, std::string doubt = {})
      : bos_(bos), adds_(adds), doubt_(std::move(doubt)) {}
  std::vector<tokenizers::TokenId> encode_from(std::string_view, std::size_t) const override { return {}; }
  std::size_t last_cut(std::string_view, std::size_t begin) const override { return begin; }
  bool continues_at_cuts() const override { return false; }
  std::size_t longest_text() const override { return 100; }
  std::int64_t vocabulary_size() const override { return 10; }
  std::string token_text(tokenizers::TokenId) const override { return {}; }
  std::string token_bytes(tokenizers::TokenId) const override { return {}; }
  std::optional<tokenizers::TokenId> bos_token() const override { return bos_; }
  bool adds_bos() const override { return adds_; }
  std::string bos_doubt() const override { return doubt_; }
  std::string description() const override { return "fake"; }

 private:
  std::optional<tokenizers::TokenId> bos_;
  bool adds_;
  std::string doubt_;
};

TEST(Bos, AutomaticFollowsTheTokenizer) {
  const Fake adds(1, true), plain(1, false), nameless(std::nullopt, true);
  EXPECT_EQ(decide_bos(BosPolicy::automatic, &adds, 2, {}).token, 1);
  EXPECT_EQ(decide_bos(BosPolicy::automatic, &plain, 2, {}).token, std::nullopt);
  EXPECT_EQ(decide_bos(BosPolicy::automatic, &nameless, 2, {}).token, 2);
  EXPECT_EQ(decide_bos(BosPolicy::automatic, nullptr, 2, {}).token, std::nullopt);
  EXPECT_THAT([&] { decide_bos(BosPolicy::automatic, &nameless, std::nullopt, {}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("--bos never")));
}

TEST(Bos, DoubtIsAnErrorUnlessTheUserDecides) {
  const Fake doubtful(1, true, "two files differ");
  EXPECT_THAT([&] { decide_bos(BosPolicy::automatic, &doubtful, 2, {}); },
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("--bos auto: two files differ; decide with --bos always or --bos never")));
  EXPECT_EQ(decide_bos(BosPolicy::always, &doubtful, 2, {}).token, 1);
  EXPECT_EQ(decide_bos(BosPolicy::never, &doubtful, 2, {}).token, std::nullopt);
}

TEST(Bos, NeverIsNever) {
  EXPECT_EQ(decide_bos(BosPolicy::never, nullptr, 2, {}).token, std::nullopt);
}

TEST(Bos, AlwaysNeedsOneAndDoesNotDoubleIt) {
  const std::vector<tokenizers::TokenId> tokens{2, 5};
  EXPECT_EQ(decide_bos(BosPolicy::always, nullptr, 3, tokens).token, 3);
  EXPECT_THAT([&] { decide_bos(BosPolicy::always, nullptr, 2, tokens); },
              ThrowsMessage<InvalidArgument>(HasSubstr("already start with the BOS 2")));
  EXPECT_THAT([&] { decide_bos(BosPolicy::always, nullptr, std::nullopt, tokens); },
              ThrowsMessage<InvalidArgument>(HasSubstr("names a BOS token")));
}

TEST(Bos, ExplanationNamesTheReason) {
  EXPECT_THAT(decide_bos(BosPolicy::always, nullptr, 3, {}).explanation,
              HasSubstr("BOS 3 at position 0 of every chunk (--bos always)"));
  EXPECT_THAT(decide_bos(BosPolicy::automatic, nullptr, 3, {}).explanation, HasSubstr("--tokens"));
}

}  // namespace chunks_test
}  // namespace gainlens::data
