#pragma once

#include "core/json.h"
#include "kernels/attention_statistics.h"

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <vector>

namespace gainlens::bench {

/// The field with the largest error in one adversarial case, against the float64 oracle on the same rounded inputs.
struct WorstError {
  std::string backend;  ///< "streaming", "composed", "composed, cuda", "fused, cuda"
  std::string hard_case;
  at::ScalarType dtype;
  /// Relative, as in the tests of the kernels (field_error). Infinite if one has NaN where the other has a number.
  std::optional<double> error;
  std::string field;
  std::string reason;  ///< why `error` is empty
};

/// Every backend that can run here, in float64, float32, bfloat16 and float16, at every adversarial case. A backend
/// that cannot run here has one entry with the reason.
std::vector<WorstError> measured_errors();

/// A table for each backend. It has a line for each case and dtype, with the error and its field, or with the reason if
/// there is none.
std::string error_table(const std::vector<WorstError>& errors);

OrderedJson to_json(const std::vector<WorstError>& errors);

}  // namespace gainlens::bench
