#pragma once

#include "models/decoder/attention_ops.h"
#include "models/decoder/key_value_cache.h"
#include "models/decoder/last_query.h"

#include <span>

namespace gainlens::models {

/// Attention of new tokens of several sequences over what their caches hold, which it extends. The rows of a pass are
/// the new tokens, one sequence after the other; each sees its own sequence alone.
///
/// The first tokens of a sequence run through UsualAttention. Later ones take the textbook form (attention_pattern),
/// a block of queries at a time: there are few of them. Evaluation only.
class CachedAttention : public hooks::AttentionOp {
 public:
  /// @param segments  cover the rows of the pass, in order; they and their caches must exist as long as this object
  /// @param see       is called with the statistics of the last query of each segment; null: none are computed. Must
  ///     exist as long as this object
  explicit CachedAttention(std::span<const CachedSegment> segments, const SeeLastQuery& see)
      : segments_(segments), see_(see) {}

  /// @param qkv      [1, head, row, head_dim]
  /// @param options  biases have the length of the longest sequence, [.., position]
  at::Tensor run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) override;
  hooks::ObservedAttention run_with_moments(std::int64_t layer, const hooks::Qkv& qkv,
                                            const kernels::AttentionOptions& options,
                                            const hooks::PrecisionBias& bias) override;

 private:
  std::span<const CachedSegment> segments_;
  const SeeLastQuery& see_;
};

}  // namespace gainlens::models
