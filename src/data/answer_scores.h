#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gainlens::data {

/// What is left of an answer when it is compared: lower case, without ASCII punctuation, without the words "a", "an"
/// and "the", words separated by single spaces. An en dash is no ASCII punctuation: it stays, and separates words where
/// it stands between letters only for the articles. Source: normalize_answer of evaluate-v1.1.py, the script that was
/// published with SQuAD.
/// @param answer  valid UTF-8
std::string normalised_answer(std::string_view answer);

/// Scores of one question.
struct AnswerScore {
  double exact = 0;  ///< 1 if the normalised answer is that of one of the accepted answers, else 0
  double f1 = 0;     ///< the largest F1 of words over the accepted answers
};

/// Each score is the largest over the accepted answers. F1 counts words with their repeats; it is 0 if no word is
/// common, so also between two answers without any word, which are an exact match. Source: evaluate-v1.1.py.
/// @param accepted  at least one
AnswerScore answer_score(std::string_view prediction, std::span<const std::string> accepted);

}  // namespace gainlens::data
