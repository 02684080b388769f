#pragma once

#include "kernels/attention_statistics.h"

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::golden {

/// A checkpoint and what the field's Python reference computes from it in float64; made by make_model_golden.py.
struct Golden {
  std::string name;
  std::optional<std::filesystem::path>
      checkpoint;              ///< in Hugging Face layout; empty where it is shared data that is absent
  bool exact = true;           ///< a GGUF file may hold in float32 what its twin's config leaves to be computed
  at::Tensor tokens;           ///< [position] int64
  at::Tensor query_positions;  ///< [query] int64: which queries are stored
  at::Tensor logit_positions;  ///< [stored position] int64
  std::map<std::string, at::Tensor>
      expected;  ///< "logits" [stored position, vocabulary]; "statistics.<field>" [layer, ...]
  std::map<std::string, double>
      bfloat16_error;  ///< root mean square, of the reference's own bfloat16 runs, by the names of `expected`
};

/// The per-query fields that goldens hold of every model, [head, query] or [head, query, key], by their names there.
std::vector<std::pair<std::string, at::Tensor>> fields_by_query(const kernels::QueryStatistics& found);

/// Every golden of the repository, by name.
std::vector<std::string> golden_names();

/// @throws InvalidArgument  no such golden, or one that is not whole
Golden read_golden(const std::string& name);

/// Error of our forward pass in `dtype`, by the names of `golden.expected` and "logits.fused": the logits without
/// statistics. The metric is relative_error, against the largest logit, and for statistics each layer by itself: the
/// largest error of any value, in bfloat16 the root mean square, since the largest of so much rounding noise differs
/// from run to run.
std::map<std::string, double> measure(const Golden& golden, at::ScalarType dtype);

/// What quality.md grants `name` (as in `measure`): fixed in float32 and float64 (1e-6 where the file itself is not
/// exact), in bfloat16 twice the reference's own error.
double tolerance(const Golden& golden, at::ScalarType dtype, const std::string& name);

}  // namespace gainlens::golden
