#pragma once

#include "models/decoder/attention_ops.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace gainlens::models {

/// Attention of sequences that lie one after another in a row: none sees another. Each is computed by UsualAttention,
/// so its bits and those of its gradients are the same as if it was alone.
class SeparateAttention : public hooks::AttentionOp {
 public:
  /// @param lengths  of the sequences; their sum is the number of positions
  explicit SeparateAttention(std::vector<std::int64_t> lengths) : lengths_(std::move(lengths)) {}

  /// @param qkv      [1, head, position, head_dim]
  /// @param options  biases have the length of the longest sequence, [.., position]
  at::Tensor run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) override;
  hooks::ObservedAttention run_with_moments(std::int64_t layer, const hooks::Qkv& qkv,
                                            const kernels::AttentionOptions& options,
                                            const hooks::PrecisionBias& bias) override;

 private:
  std::vector<std::int64_t> lengths_;
};

}  // namespace gainlens::models
