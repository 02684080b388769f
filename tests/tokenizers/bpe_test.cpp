#include "tokenizers/bpe.h"

#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::tokenizers {
namespace bpe_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Ids = std::vector<TokenId>;

/// Tokens get the ids 0, 1, 2, ... in order.
Bpe make(const std::vector<std::string>& tokens, const std::vector<Bpe::Merge>& merges, BpeOptions options = {}) {
  Vocabulary vocabulary;
  for (std::size_t id = 0; id < tokens.size(); ++id) vocabulary.add(tokens[id], static_cast<std::int64_t>(id), "test");
  return Bpe(std::move(vocabulary), merges, std::move(options), "test");
}

Ids encode(const Bpe& bpe, std::string_view word) {
  Bpe::Cache cache;
  Ids first, second;
  bpe.encode(word, cache, first);
  bpe.encode(word, cache, second);
  EXPECT_EQ(first, second) << "a cached word differs";
  return first;
}

TEST(Bpe, TheEarlierMergeWinsWhereverItStands) {
  const Bpe bpe = make({"a", "b", "c", "ab", "bc"}, {{"b", "c"}, {"a", "b"}});
  EXPECT_EQ(encode(bpe, "abc"), (Ids{0, 4}));  // bc first, then a stands alone
  EXPECT_EQ(encode(bpe, "ababc"), (Ids{3, 0, 4}));
}

TEST(Bpe, TiesGoLeft) {
  const Bpe bpe = make({"a", "aa"}, {{"a", "a"}});
  EXPECT_EQ(encode(bpe, "aaa"), (Ids{1, 0}));
  EXPECT_EQ(encode(bpe, "aaaaa"), (Ids{1, 1, 0}));
}

TEST(Bpe, MergesBuildOnMerges) {
  const Bpe bpe = make({"a", "b", "ab", "abab"}, {{"a", "b"}, {"ab", "ab"}});
  EXPECT_EQ(encode(bpe, "ababab"), (Ids{3, 2}));
}

TEST(Bpe, UnknownCharactersOneByOneOrFused) {
  EXPECT_EQ(encode(make({"<unk>", "a"}, {}, {.unknown_token = "<unk>"}), "xya"), (Ids{0, 0, 1}));
  EXPECT_EQ(encode(make({"<unk>", "a"}, {}, {.unknown_token = "<unk>", .fuse_unknown = true}), "xyaz"), (Ids{0, 1, 0}));
}

TEST(Bpe, WithoutUnknownTokenACharacterIsNamed) {
  const Bpe bpe = make({"a"}, {});
  EXPECT_THAT([&] { encode(bpe, "a\xE2\x82\xAC"); }, ThrowsMessage<InvalidArgument>(HasSubstr("U+20AC")));
  EXPECT_THAT([&] { encode(bpe, "b"); }, ThrowsMessage<InvalidArgument>(HasSubstr("--tokens")));
}

TEST(Bpe, BytesStandInForACharacterOnlyWhenAllAreThere) {
  const BpeOptions options{.unknown_token = "<unk>", .byte_fallback = true};
  EXPECT_EQ(encode(make({"<unk>", "<0xC3>", "<0xA4>"}, {}, options), "ä"), (Ids{1, 2}));
  EXPECT_EQ(encode(make({"<unk>", "<0xC3>"}, {}, options), "ä"), (Ids{0}));
}

TEST(Bpe, AWholeTokenIsNotSplitWhereMergesAreIgnored) {
  const std::vector<std::string> tokens{"a", "b", "ab"};
  EXPECT_EQ(encode(make(tokens, {}, {.ignore_merges = true}), "ab"), (Ids{2}));
  EXPECT_EQ(encode(make(tokens, {}), "ab"), (Ids{0, 1}));
}

TEST(Bpe, LongWordsAreCutOnlyWhereNoMergeReaches) {
  // 'ab' merges at every place where b follows a. No token contains 'ba', so a long word may be cut there and only
  // there.
  const Bpe bpe = make({"a", "b", "ab"}, {{"a", "b"}});
  std::string word;
  Ids expected;
  for (int i = 0; i < 1000; ++i) {
    word += "ab";
    expected.push_back(2);
  }
  EXPECT_EQ(encode(bpe, word), expected);
}

TEST(Bpe, ALongRunIsMergedFromTheLeft) {
  const Bpe bpe = make({"a", "aa", "aaaa"}, {{"a", "a"}, {"aa", "aa"}});
  Ids expected(250, 2);
  expected.push_back(1);
  expected.push_back(0);
  EXPECT_EQ(encode(bpe, std::string(1003, 'a')), expected);  // 250 x 4 + 2 + 1
}

TEST(Bpe, BrokenMergesAreNamed) {
  EXPECT_THAT(
      [] {
        make({"a", "b"}, {{"a", "b"}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("merge 0 ('a' with 'b') needs 'ab'")));
  EXPECT_THAT([] { make({"a", "ax"}, {{"a", "x"}}); }, ThrowsMessage<InvalidArgument>(HasSubstr("needs 'x'")));
  EXPECT_THAT([] { make({"a", "aa"}, {{"a", ""}}); }, ThrowsMessage<InvalidArgument>(HasSubstr("empty side")));
  EXPECT_THAT([] { parse_merge("a b c", "line 3"); }, ThrowsMessage<InvalidArgument>(HasSubstr("line 3: 'a b c'")));
  EXPECT_EQ(parse_merge("a bc", "line 1"), Bpe::Merge("a", "bc"));
}

TEST(Vocabulary, TokensAndIdsAreUniqueBothWays) {
  Vocabulary vocabulary;
  vocabulary.add("a", 3, "test");
  vocabulary.add("a", 3, "test");
  EXPECT_EQ(vocabulary.size(), 1u);
  EXPECT_EQ(vocabulary.end_id(), 4);
  EXPECT_THAT([&] { vocabulary.add("b", 3, "test"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("id 3 of token 'b' belongs to another")));
  EXPECT_THAT([&] { vocabulary.add("a", 4, "test"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("has the ids 3 and 4")));
  EXPECT_THAT([&] { vocabulary.add("c", -1, "test"); }, ThrowsMessage<InvalidArgument>(HasSubstr("id -1")));
  EXPECT_THAT([&] { vocabulary.add("c", Vocabulary::largest_id + 1, "test"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("ids are from 0 to")));
}

}  // namespace bpe_test
}  // namespace gainlens::tokenizers
