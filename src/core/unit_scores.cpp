#include "core/unit_scores.h"

#include "core/check.h"

#include <algorithm>

namespace gainlens {
namespace {

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

bool is_letter_or_digit(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

double mean_score(std::span<const double> scores) {
  ASSERT(!scores.empty(), "the mean of no scores");
  double sum = 0;
  for (const double score : scores) sum += score;
  return sum / static_cast<double>(scores.size());
}

bool is_unit_noun(std::string_view noun) {
  return !noun.empty() && noun.size() <= 20 && std::ranges::all_of(noun, is_lower);
}

bool is_score_name(std::string_view name) {
  constexpr std::string_view others = "-_.+@";
  return !name.empty() && name.size() <= 60 && is_letter_or_digit(name.front()) &&
         std::ranges::all_of(name,
                             [&](char c) { return is_letter_or_digit(c) || others.find(c) != std::string_view::npos; });
}

}  // namespace gainlens
