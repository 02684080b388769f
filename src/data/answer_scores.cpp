#include "data/answer_scores.h"

#include "core/check.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

namespace gainlens::data {
namespace {

/// What Python's `\w` takes: letters, numbers and the underscore. Marks are none of these.
bool is_word(UChar32 letter) {
  return (U_GET_GC_MASK(letter) & (U_GC_N_MASK | U_GC_L_MASK)) != 0 || letter == '_';
}

/// What Python's str.split() splits at.
bool is_space(UChar32 letter) {
  return u_isUWhiteSpace(letter) || (letter >= 0x1c && letter <= 0x1f);
}

/// string.punctuation of Python.
bool is_punctuation(UChar32 letter) {
  return letter < 0x80 && std::ispunct(static_cast<unsigned char>(letter)) != 0;
}

bool is_article(const icu::UnicodeString& word) {
  return word == icu::UnicodeString("a") || word == icu::UnicodeString("an") || word == icu::UnicodeString("the");
}

/// The text with a space in the place of each article that stands alone between characters of no word.
icu::UnicodeString without_articles(const icu::UnicodeString& text) {
  icu::UnicodeString result;
  for (int32_t place = 0; place < text.length();) {
    int32_t end = place;
    while (end < text.length() && is_word(text.char32At(end))) end = text.moveIndex32(end, 1);
    if (end == place) {
      result.append(text.char32At(place));
      place = text.moveIndex32(place, 1);
      continue;
    }
    const icu::UnicodeString word = text.tempSubStringBetween(place, end);
    result.append(is_article(word) ? icu::UnicodeString(" ") : word);
    place = end;
  }
  return result;
}

std::vector<std::string> words_of(std::string_view normalised) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < normalised.size();) {
    const std::size_t end = std::min(normalised.find(' ', begin), normalised.size());
    words.emplace_back(normalised.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

double f1(const std::vector<std::string>& prediction, const std::vector<std::string>& accepted) {
  std::map<std::string, std::int64_t> left;
  for (const std::string& word : accepted) ++left[word];
  std::int64_t common = 0;
  for (const std::string& word : prediction) {
    const auto found = left.find(word);
    if (found == left.end() || found->second == 0) continue;
    --found->second;
    ++common;
  }
  if (common == 0) return 0;
  const double precision = static_cast<double>(common) / static_cast<double>(prediction.size());
  const double recall = static_cast<double>(common) / static_cast<double>(accepted.size());
  return 2 * precision * recall / (precision + recall);
}

}  // namespace

std::string normalised_answer(std::string_view answer) {
  icu::UnicodeString text =
      icu::UnicodeString::fromUTF8(icu::StringPiece(answer.data(), static_cast<int32_t>(answer.size())));
  text.toLower(icu::Locale::getRoot());
  icu::UnicodeString plain;
  for (int32_t place = 0; place < text.length(); place = text.moveIndex32(place, 1)) {
    if (!is_punctuation(text.char32At(place))) plain.append(text.char32At(place));
  }
  plain = without_articles(plain);
  icu::UnicodeString spaced;
  bool between = false;  // spaces stand before the next character
  for (int32_t place = 0; place < plain.length(); place = plain.moveIndex32(place, 1)) {
    const UChar32 letter = plain.char32At(place);
    if (is_space(letter)) {
      between = true;
      continue;
    }
    if (between && !spaced.isEmpty()) spaced.append(static_cast<UChar32>(' '));
    between = false;
    spaced.append(letter);
  }
  std::string result;
  spaced.toUTF8String(result);
  return result;
}

AnswerScore answer_score(std::string_view prediction, std::span<const std::string> accepted) {
  ASSERT(!accepted.empty(), "a question without an accepted answer");
  const std::string given = normalised_answer(prediction);
  const std::vector<std::string> words = words_of(given);
  AnswerScore best;
  for (const std::string& answer : accepted) {
    const std::string wanted = normalised_answer(answer);
    best.exact = std::max(best.exact, given == wanted ? 1.0 : 0.0);
    best.f1 = std::max(best.f1, f1(words, words_of(wanted)));
  }
  return best;
}

}  // namespace gainlens::data
