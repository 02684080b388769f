#include "tokenizers/pattern.h"

#include "core/error.h"
#include "tokenizers/byte_level.h"
#include "tokenizers/oniguruma.h"
#include "tokenizers/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::tokenizers {
namespace pattern_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Pieces = std::vector<std::string>;

/// The pieces of the text, with the matches in brackets.
Pieces marked(const Pattern& pattern, std::string_view text) {
  Pieces pieces;
  for (const Span& span : pattern.spans(text)) {
    const std::string piece(text.substr(span.begin, span.end - span.begin));
    pieces.push_back(span.matched ? "[" + piece + "]" : piece);
  }
  return pieces;
}
Pieces marked(std::string_view pattern, std::string_view text) {
  return marked(Pattern::oniguruma(pattern, "test"), text);
}

TEST(Pattern, MatchesAndWhatIsBetweenCoverTheText) {
  EXPECT_EQ(marked("b+", "abbc"), (Pieces{"a", "[bb]", "c"}));
  EXPECT_EQ(marked("x", "abc"), (Pieces{"abc"}));
  EXPECT_EQ(marked("x", ""), (Pieces{""}));
}

TEST(Pattern, EmptyMatchesMoveOnByCharacters) {
  EXPECT_EQ(marked("x*", "äx"), (Pieces{"[]", "ä", "[x]"}));
}

TEST(Pattern, Gpt2Words) {
  EXPECT_EQ(marked(gpt2_pattern, "I've  12é!"), (Pieces{"[I]", "['ve]", "[ ]", "[ 12]", "[é]", "[!]"}));
}

TEST(Pattern, LinesAreRubys) {
  EXPECT_EQ(marked("^.", "ab\ncd"), (Pieces{"[a]", "b\n", "[c]", "d"}));
}

TEST(Pattern, ClassesAreOnigurumas) {
  EXPECT_EQ(marked(R"(\s)", "a\u180Eb\u0085"),
            (Pieces{"a\u180Eb", "[\u0085]"}));  // only PCRE2 treats U+180E as white space
  EXPECT_EQ(marked(R"([^\S\n]+)", "a \n\tb"), (Pieces{"a", "[ ]", "\n", "[\t]", "b"}));
  EXPECT_EQ(marked(R"(\h+)", "xfAy"), (Pieces{"x", "[fA]", "y"}));
  EXPECT_EQ(marked(R"(\p{Han}+)", "a\u4E00\u3002"),
            (Pieces{"a", "[\u4E00]", "\u3002"}));  // the full stop is Han only as a script extension
  EXPECT_EQ(marked(R"(\u00e9|\x41)", "éA"), (Pieces{"[é]", "[A]"}));
}

TEST(Pattern, LiteralsAreNotPatterns) {
  EXPECT_EQ(marked(Pattern::literal("a.", "test"), "aba."), (Pieces{"ab", "[a.]"}));
}

TEST(Pattern, WhatIsReadDifferentlyIsRefused) {
  for (const char* pattern :
       {"a{1,3}+", "a(?i)b", "(?<n>a)", R"(\bword)", R"((a)\1)", "a{,3}", R"([\W])", R"(\xE9)", "a\\", "(?m:a)"}) {
    EXPECT_THAT([&] { Pattern::oniguruma(pattern, "file: where"); },
                ThrowsMessage<InvalidArgument>(::testing::AllOf(HasSubstr("file: where"), HasSubstr("--tokens"))))
        << pattern;
  }
}

TEST(Pattern, SetsInsideSets) {
  EXPECT_EQ(marked("[a[bc]]+", "xabcx"), (Pieces{"x", "[abc]", "x"}));
  EXPECT_EQ(marked(R"( ?[^(\s|[.,!])]+)", "no (x|y), z"),
            (Pieces{"[no]", " (", "[x]", "|", "[y]", "),", "[ z]"}));  // BLOOM's: the inner set is part of the outer
  EXPECT_EQ(marked("[a[^b-y]]+", "zabcA"), (Pieces{"[za]", "bc", "[A]"}));
  EXPECT_EQ(marked("[^a[^b-y]]+", "zabcA"), (Pieces{"za", "[bc]", "A"}));
  EXPECT_EQ(marked("[[^a]\n]", "a\nb"), (Pieces{"a", "[\n]", "[b]"}));
  EXPECT_EQ(marked("[-[.-/]^-]+", "a-./^b"), (Pieces{"a", "[-./^]", "b"}));
  EXPECT_EQ(marked(R"([[\x{61}-\x{63}]\x64\u0065]+)", "{abcdef}"), (Pieces{"{", "[abcde]", "f}"}));
  EXPECT_EQ(marked("[x[a-c[e]]{2}]", "x{2}"), (Pieces{"[x]", "[{]", "[2]", "[}]"}));
}

TEST(Pattern, IntersectionsOfSets) {
  EXPECT_EQ(marked("[a-f&&d-z]+", "abcdefgh"), (Pieces{"abc", "[def]", "gh"}));
  EXPECT_EQ(marked("[^a-f&&d-z]+", "abcdefgh"), (Pieces{"[abc]", "def", "[gh]"}));  // the negation comes last
  EXPECT_EQ(marked("[a-z&&[^aeiou]&&[^x]]+", "abcxe"), (Pieces{"a", "[bc]", "xe"}));
  EXPECT_EQ(marked(R"([\p{L}&&[^\p{Han}]]+)", "ab\u4E00\u3002é"), (Pieces{"[ab]", "\u4E00\u3002", "[é]"}));
  EXPECT_EQ(marked(R"((?i:x)[a&&[ab]])", "XaXA"), (Pieces{"[Xa]", "XA"}));  // case matters again after the group
  EXPECT_EQ(marked("(?:[a-z&&[^b]]|1)++", "a1b"), (Pieces{"[a1]", "b"}));
}

TEST(Pattern, SetsThatAreReadDifferentlyAreRefused) {
  for (const char* pattern : {"(?i)[a&&[b]]", "(?i:[^a[^b]])", "[a[:alpha:]]", "[&&a]", "[a&&]", "[a&&&&b]", "[[]a]]",
                              "[a-[b]]", "[[b]-a]", "[a-c-[b]]", R"([\w-a[b]])", R"([a-\w[b]])", "[a[b]", "[a&&b-",
                              "[a[\\x{62", "[a[^\\x{00}-b]]", "[a[^\\u0000-b]]", "[a[b\\"}) {
    EXPECT_THAT([&] { Pattern::oniguruma(pattern, "file: where"); },
                ThrowsMessage<InvalidArgument>(::testing::AllOf(HasSubstr("file: where"), HasSubstr("--tokens"))))
        << pattern;
  }
  const std::string deep = std::string(30, '[') + "a" + std::string(30, ']');
  EXPECT_THAT([&] { Pattern::oniguruma(deep, "test"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("more than 20 sets inside each other")));
}

TEST(Pattern, WhatPcre2RefusesIsNamed) {
  EXPECT_THAT([] { Pattern::oniguruma("(a", "test"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("PCRE2 refuses the pattern '(a'")));
  EXPECT_THAT([] { Pattern::literal("", "test"); }, ThrowsMessage<InvalidArgument>(HasSubstr("empty text")));
}

TEST(Pattern, RunawayMatchingIsAnError) {
  const Pattern pattern = Pattern::oniguruma("(a|aa)+\\z", "test");
  EXPECT_THAT([&] { pattern.spans(std::string(60, 'a') + "b"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("--tokens")));
}

TEST(Split, Behaviors) {
  const auto pieces = [](SplitBehavior behavior) {
    const std::string_view text = "a--b";
    Pieces result;
    for (const Span& span : split_spans(Pattern::literal("-", "test").spans(text), behavior)) {
      result.emplace_back(text.substr(span.begin, span.end - span.begin));
    }
    return result;
  };
  EXPECT_EQ(pieces(SplitBehavior::removed), (Pieces{"a", "b"}));
  EXPECT_EQ(pieces(SplitBehavior::isolated), (Pieces{"a", "-", "-", "b"}));
  EXPECT_EQ(pieces(SplitBehavior::merged_with_previous), (Pieces{"a-", "-", "b"}));
  EXPECT_EQ(pieces(SplitBehavior::merged_with_next), (Pieces{"a", "-", "-b"}));
  EXPECT_EQ(pieces(SplitBehavior::contiguous), (Pieces{"a", "--", "b"}));
}

TEST(ByteLevel, PrintableBytesStandForThemselves) {
  std::string text;
  append_byte_level(" A\xC3\xA9\n", text);
  EXPECT_EQ(text, "ĠAÃ©Ċ");  // space -> U+0120, newline -> U+010A
}

}  // namespace pattern_test
}  // namespace gainlens::tokenizers
