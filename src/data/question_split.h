#pragma once

#include "data/questions.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace gainlens::data {

struct SplitSizes {
  std::int64_t training = 0, validation = 0;
  std::int64_t test = 0;  ///< 0: all that is left
};

/// The sizes that a user gives; what is absent has a default.
struct AskedSizes {
  std::optional<std::int64_t> training, validation;
  std::int64_t test = 0;  ///< 0: all that is left
};

/// Rows to learn from, and to choose the best checkpoint by, if a file has enough of them.
inline constexpr std::int64_t default_rows = 1000;

/// The sizes for files that may be smaller than the defaults. A size that was asked for stays. If the others do not
/// fit into one file, training, validation and test get 3, 1 and 1 parts of what is left for them.
/// @param questions  of the file that is split, each text once
/// @param test_questions    of a second file with the test; absent: the first one holds all parts
SplitSizes fitted_sizes(const AskedSizes& asked, std::int64_t questions, std::optional<std::int64_t> test_questions);

/// The number of different texts.
std::int64_t distinct_questions(const std::vector<Question>& questions);

/// @throws InvalidArgument  a size below 1 (of test: below 0)
void check_sizes(const SplitSizes& sizes);

/// Questions to learn from, to choose the best checkpoint by, and to be tested on.
struct QuestionSplit {
  std::vector<Question> training, validation, test;
  /// The first rows of `test` that are `validation` too: the paper selects on a part of its test set.
  std::int64_t selection_rows = 0;
  std::int64_t repeated = 0;  ///< questions left out because one with the same text is in an earlier part
};

/// Splits one file. No group, and no question by its text, is in two parts. The groups are drawn by the seed.
/// @throws InvalidArgument  as check_sizes(); fewer questions than asked for in a part
QuestionSplit split_questions(std::vector<Question> all, const SplitSizes& sizes, std::uint64_t seed);

/// The paper's way: training rows are drawn from one file; the other one is the test set, and its first rows choose the
/// best checkpoint.
/// @throws InvalidArgument  as above
QuestionSplit split_questions(std::vector<Question> training, std::vector<Question> test, const SplitSizes& sizes,
                              std::uint64_t seed);

}  // namespace gainlens::data
