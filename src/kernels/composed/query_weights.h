#pragma once

#include "kernels/attention_inputs.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::kernels {

/// The weights of some consecutive queries over all keys, by library calls. For a few queries: it holds them all.
/// @param options      without sequences
/// @param query, key   as attention_statistics
/// @param begin, end   the queries
/// @returns [head, query, key] p over keys and sink, float64 for float64 inputs, else float32; 0 for hidden and later
///     keys, and of a query that sees no key
at::Tensor weights_of_queries(const AttentionOptions& options, const at::Tensor& query, const at::Tensor& key,
                              std::int64_t begin, std::int64_t end);

}  // namespace gainlens::kernels
