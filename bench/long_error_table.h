#pragma once

#include "core/json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::bench {

/// Error of S of the last queries of one long text, float32 against the float64 oracle.
struct LongError {
  std::string way;  ///< "streaming", "composed", "gradient"; "composed, cuda", "fused, cuda" where there is a GPU
  std::string hard_case;
  std::int64_t length;
  std::optional<double> error;  ///< max |S - exact S| / max (v - c)^2, c the mean of the first 64 values
  std::string reason;           ///< why there is none
};

/// Every way to compute S, at every case and length: the last 64 queries, d = 64.
/// @throws InvalidArgument  a length below 65, which no query of the cases' second part reaches
std::vector<LongError> long_errors(const std::vector<std::int64_t>& lengths);

/// A line for each way and case, a column for each length.
std::string long_error_table(const std::vector<LongError>& errors);

OrderedJson to_json(const std::vector<LongError>& errors);

}  // namespace gainlens::bench
