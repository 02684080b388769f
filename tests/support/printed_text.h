#pragma once

#include <string>
#include <string_view>

namespace gainlens::testing {

/// Compares a printed text with the expected one. Returns an empty string if they agree, else the first line in which
/// they differ. Words and spaces must be the same. A number with decimals may differ by one in its last printed digit,
/// because processors round sums in different orders. What a machine has available ("; 12 GiB available")
/// and its speed ("about 0.1 s for each sequence") may differ.
std::string difference_of_printed(std::string_view expected, std::string_view found);

}  // namespace gainlens::testing
