#pragma once

#include "kernels/gradient/packed_attention.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::kernels {

/// Packed sequences as a batch of sequences of one length, for library calls. What stands at the padding is the first
/// row, and is not used.
class PaddedSequences {
 public:
  PaddedSequences(const PackedBounds& begin, at::Device device);

  std::int64_t sequences() const { return sequences_; }
  std::int64_t longest() const { return longest_; }
  /// int64 [sequence, longest]: row of each place.
  at::Tensor rows() const { return rows_.view({sequences_, longest_}); }
  /// @param x  [row, head, dim]
  /// @returns [sequence, head, longest, dim]
  at::Tensor padded(const at::Tensor& x) const;
  /// The inverse of padded().
  at::Tensor packed(const at::Tensor& x) const;
  /// -infinity where a query does not see a key, else 0: [sequence, 1, query, key]. Queries of padding see all keys: a
  /// row without any key would bring NaN into the gradients.
  at::Tensor hidden_keys(bool causal, const at::TensorOptions& options) const;

 private:
  std::int64_t sequences_, longest_ = 0;
  std::vector<std::int64_t> lengths_;
  at::Tensor rows_;    // [sequence * longest]
  at::Tensor places_;  // [row]: number of its place
};

/// The scores of attention over padded sequences, hidden keys at -infinity: [sequence, head, query, key].
/// @param query, key  [position, head, head_dim]
/// @param scale       as a number: 0 is not allowed
at::Tensor padded_scores(const PaddedSequences& sequences, const at::Tensor& query, const at::Tensor& key, double scale,
                         const PackedAttentionOptions& options);

/// The factors of dropout of such weights, as packed_attention() draws them.
at::Tensor padded_dropout(const PaddedSequences& sequences, const Dropout& dropout, const at::Tensor& weights);

}  // namespace gainlens::kernels
