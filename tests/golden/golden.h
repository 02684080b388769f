#pragma once

#include "kernels/attention_statistics.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::golden {

/// A checkpoint, and the results that the field's Python reference computes from it in float64. Made by
/// make_model_golden.py.
struct Golden {
  std::string name;
  /// Checkpoint in Hugging Face layout; empty if it is shared data that is absent.
  std::optional<std::filesystem::path> checkpoint;
  /// False if the checkpoint holds a rounded number that the reference computes more exactly.
  bool exact = true;
  at::Tensor tokens;           ///< [position] int64
  at::Tensor query_positions;  ///< [query] int64: positions of the stored queries
  at::Tensor logit_positions;  ///< [stored position] int64
  /// "logits" [stored position, vocabulary]; "statistics.<field>" [layer, ...]
  std::map<std::string, at::Tensor> expected;
  /// Root mean square error of the reference's own bfloat16 runs, by the names of `expected`.
  std::map<std::string, double> bfloat16_error;
};

/// The per-query fields that goldens hold for every model, [head, query] or [head, query, key], by their names in the
/// goldens.
std::vector<std::pair<std::string, at::Tensor>> fields_by_query(const kernels::QueryStatistics& found);

/// The names of all goldens of the repository, sorted.
std::vector<std::string> golden_names();

/// @throws InvalidArgument  there is no such golden, or it is incomplete
Golden read_golden(const std::string& name);

/// Error of our forward pass in `dtype`, by the names of `golden.expected`, and "logits.fused": the error of the logits
/// computed without statistics. The metric is relative_error. Logits are compared with the largest logit. For
/// statistics, each layer is compared on its own scale. The error is the largest error of any value. In bfloat16 it is
/// the root mean square, because the largest rounding error is itself noisy.
std::map<std::string, double> measure(const Golden& golden, at::ScalarType dtype, at::Device device = at::kCPU);

/// Largest |difference| between `key_mean` of every layer and the means of the T x T weights from the same queries and
/// keys. Infinite if a key above the threshold is not given.
double key_mean_error(const Golden& golden, at::ScalarType dtype);

/// The largest error allowed for `name` (a name as in `measure`), see CONTRIBUTING.md, "Tests and tolerances". Fixed in
/// float32 and float64 (in float64 1e-6 if the checkpoint is not exact). In bfloat16 it is twice the reference's own
/// error.
double tolerance(const Golden& golden, at::ScalarType dtype, const std::string& name);

}  // namespace gainlens::golden
