#pragma once

#include "core/json.h"
#include "kernels/attention_statistics.h"

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <vector>

namespace gainlens::bench {

/// The field of one adversarial case that is furthest from the float64 oracle on the same, already rounded, inputs.
struct WorstError {
  std::string backend;  ///< "streaming", "composed", "composed, cuda", "fused, cuda"
  std::string hard_case;
  at::ScalarType dtype;
  std::optional<double>
      error;  ///< relative, as the kernels' tests measure it (field_error); infinite where NaN and numbers disagree
  std::string field;
  std::string reason;  ///< why there is no error
};

/// Every backend that is at hand, in float64, float32, bfloat16 and float16, at every adversarial case; one that is
/// not, once, with the reason.
std::vector<WorstError> measured_errors();

/// A table for each backend: a line for each case and dtype with the error and its field, or why there is none.
std::string error_table(const std::vector<WorstError>& errors);

OrderedJson to_json(const std::vector<WorstError>& errors);

}  // namespace gainlens::bench
