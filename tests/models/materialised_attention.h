#pragma once

#include "models/decoder/attention_ops.h"

namespace gainlens::models {

/// The textbook form of attention, with all T x T weights in memory: a reference.
class MaterialisedAttention : public hooks::AttentionOp {
 public:
  at::Tensor run(std::int64_t, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) override {
    return apply_pattern(attention_pattern(qkv, options), qkv.value);
  }
  hooks::ObservedAttention run_with_moments(std::int64_t, const hooks::Qkv& qkv,
                                            const kernels::AttentionOptions& options,
                                            const hooks::PrecisionBias& bias) override {
    return observed_by_pattern(attention_pattern(qkv, options, bias), qkv.value);
  }
};

}  // namespace gainlens::models
