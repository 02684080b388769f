#pragma once

#include "kernels/attention_inputs.h"

#include <functional>

namespace gainlens::kernels {

/// Statistics of one sequence that fills its tensors. @param options  without `sequences`
using SequenceKernel =
    std::function<QueryStatistics(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
                                  const at::Tensor& key, const at::Tensor& value)>;

/// Runs `kernel` over every sequence of the options by itself, so that packing changes no sequence's numbers, and puts
/// the results where the sequences lie. Padding has output 0 and NaN. The inputs have been checked.
QueryStatistics over_sequences(const AttentionOptions& options, const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const SequenceKernel& kernel);

/// Copies the fields by query of `part` into `whole`, from query `begin` on.
void copy_queries(const QueryStatistics& part, std::int64_t begin, QueryStatistics& whole);

/// The options of one sequence: biases and precisions narrowed to its positions.
AttentionOptions options_of(const AttentionOptions& options, const Sequence& sequence);

}  // namespace gainlens::kernels
