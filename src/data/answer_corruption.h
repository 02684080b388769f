#pragma once

#include "data/questions.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::data {

/// Replaces some words of answers by other words of answers, as a noisy annotation would.
///
/// A word is known by the id of its question and its place in the answer. Its hash (SHA-256 of seed, id, place and
/// word) is a number in [0, 1); the word is replaced if the number is below the noise level. So the words that are
/// replaced at 10% are among those at 20%, each by the same donor at every level. The donor follows from a second hash:
/// a word of the vocabulary, which is that of the given answers; never the word itself. The paper says "a deterministic
/// per-word hash" and "donors drawn from the answer-vocabulary pool"; whether its hash knows the place of a word is not
/// said.
class AnswerCorruption {
 public:
  /// @param questions  whose first answers give the vocabulary
  AnswerCorruption(const std::vector<Question>& questions, std::uint64_t seed);

  /// @param percent  noise level, 0 to 100
  /// @throws InvalidArgument  a level out of its range; a word has to be replaced and the vocabulary has no other one
  std::string corrupted(std::string_view answer, const std::string& id, double percent) const;
  /// Distinct words of the vocabulary.
  std::int64_t words() const { return std::ssize(vocabulary_); }

 private:
  std::uint64_t seed_;
  std::vector<std::string> vocabulary_;  ///< sorted
};

}  // namespace gainlens::data
