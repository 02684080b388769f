#pragma once

#include "core/json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::bench {

/// The error of S for the last queries of one long text, in float32 against the float64 oracle.
struct LongError {
  std::string way;  ///< "streaming", "composed", "gradient"; "composed, cuda", "fused, cuda"
  std::string hard_case;
  std::int64_t length;
  std::optional<double> error;  ///< max |S - exact S| / max (v - c)^2, c the mean of the first 64 values
  std::string reason;           ///< why `error` is empty
};

/// The errors of every way to compute S, for every case and length, over the last 64 queries with d = 64.
/// @throws InvalidArgument  a length is below 65: no query would reach the second part of the cases
std::vector<LongError> long_errors(const std::vector<std::int64_t>& lengths);

/// A table with a line for each way and case, and a column for each length.
std::string long_error_table(const std::vector<LongError>& errors);

OrderedJson to_json(const std::vector<LongError>& errors);

}  // namespace gainlens::bench
