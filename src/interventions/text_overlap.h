#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gainlens::interventions {

/// A text that two sets of documents have in common: this many tokens in a row, at most the length of a document.
inline constexpr std::int64_t shared_run = 32;

/// Refuses calibration documents that share text with the documents of the test.
/// @param first  the first position that holds text: 1 if a BOS stands before it
/// @throws InvalidArgument  names both documents
void check_disjoint(const std::vector<std::vector<std::int32_t>>& calibration,
                    const std::vector<std::vector<std::int32_t>>& test, std::int64_t first);

}  // namespace gainlens::interventions
