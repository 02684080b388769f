#pragma once

#include "kernels/attention_inputs.h"

#include <functional>

namespace gainlens::kernels {

/// Computes the statistics of one sequence, whose tensors hold no other positions.
/// @param options  without `sequences`
using SequenceKernel =
    std::function<QueryStatistics(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
                                  const at::Tensor& key, const at::Tensor& value)>;

/// Runs `kernel` on each sequence of the options separately, so that packing does not change a sequence's numbers. Puts
/// the results at the positions of the sequences. Padding has output 0 and NaN statistics. The inputs must have been
/// checked.
QueryStatistics over_sequences(const AttentionOptions& options, const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const SequenceKernel& kernel);

/// Copies every field of `part` that has a dimension of positions into `whole`, starting at position `begin` of
/// `whole`.
void copy_positions(const QueryStatistics& part, std::int64_t begin, QueryStatistics& whole);

/// The options of one sequence: biases and precisions narrowed to its positions.
AttentionOptions options_of(const AttentionOptions& options, const Sequence& sequence);

}  // namespace gainlens::kernels
