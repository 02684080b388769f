#pragma once

#include <string>
#include <string_view>

namespace gainlens::testing {

/// Empty where `found` is what `expected` says; else the first line in which they differ. Words and spaces must be the
/// same; a number with decimals may differ by one in its last printed place, since other processors round sums in
/// another order.
std::string difference_of_printed(std::string_view expected, std::string_view found);

}  // namespace gainlens::testing
