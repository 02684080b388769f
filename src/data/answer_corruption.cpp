#include "data/answer_corruption.h"

#include "core/check.h"
#include "core/sha256.h"

#include <algorithm>
#include <charconv>

namespace gainlens::data {
namespace {

/// A word, or the white space between two.
struct Piece {
  std::string_view text;
  bool is_word = false;
};

std::vector<Piece> pieces_of(std::string_view text) {
  constexpr std::string_view spaces = " \t\r\n";
  std::vector<Piece> pieces;
  while (!text.empty()) {
    const bool is_word = spaces.find(text[0]) == std::string_view::npos;
    const std::size_t end =
        std::min(is_word ? text.find_first_of(spaces) : text.find_first_not_of(spaces), text.size());
    pieces.push_back({text.substr(0, end), is_word});
    text.remove_prefix(end);
  }
  return pieces;
}

/// 64 bits that follow from the text.
std::uint64_t hash_of(const std::string& text) {
  const std::string hex = sha256_hex(text).substr(0, 16);
  std::uint64_t bits = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), bits, 16);
  return bits;
}

}  // namespace

AnswerCorruption::AnswerCorruption(const std::vector<Question>& questions, std::uint64_t seed) : seed_(seed) {
  for (const Question& question : questions) {
    for (const Piece& piece : pieces_of(question.answers.front()))
      if (piece.is_word) vocabulary_.emplace_back(piece.text);
  }
  std::sort(vocabulary_.begin(), vocabulary_.end());
  vocabulary_.erase(std::unique(vocabulary_.begin(), vocabulary_.end()), vocabulary_.end());
}

std::string AnswerCorruption::corrupted(std::string_view answer, const std::string& id, double percent) const {
  CHECK(percent >= 0 && percent <= 100, "--noise: {}; must be 0 to 100 (percent)", percent);
  std::string result;
  std::size_t place = 0;
  for (const Piece& piece : pieces_of(answer)) {
    if (!piece.is_word) {
      result += piece.text;
      continue;
    }
    // Lengths before texts: no two words have the same text to hash.
    const std::string key = fmt::format("{}:{}:{}:{}:{}", seed_, id.size(), id, place++, piece.text);
    const double draw = static_cast<double>(hash_of("replaced:" + key) >> 11) * 0x1.0p-53;
    if (draw >= percent / 100) {
      result += piece.text;
      continue;
    }
    const auto own = std::lower_bound(vocabulary_.begin(), vocabulary_.end(), piece.text);
    const bool known = own != vocabulary_.end() && *own == piece.text;
    const std::size_t others = vocabulary_.size() - (known ? 1 : 0);
    CHECK(others > 0, "--noise: the answers have no other word than '{}' to put in its place",
          printable(std::string(piece.text), 40));
    std::size_t donor = hash_of("donor:" + key) % others;
    if (known && donor >= static_cast<std::size_t>(own - vocabulary_.begin())) ++donor;
    result += vocabulary_[donor];
  }
  return result;
}

}  // namespace gainlens::data
