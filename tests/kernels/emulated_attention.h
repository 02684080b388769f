#pragma once

#include "kernels/attention_agreement.h"
#include "kernels/attention_sequences.h"
#include "kernels/cuda/fused_call.h"
#include "kernels/cuda_emulation/emulated_fused.h"

namespace gainlens::kernels::testing {

/// Runs the fused backend, with its kernel on the host.
inline QueryStatistics emulated(const AttentionOptions& options, const Inputs& in) {
  const SequenceKernel kernel = [](const AttentionOptions& own, const AttentionShape& shape, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value) {
    return attention_fused(own, shape, query, key, value, launch_emulated);
  };
  return over_sequences(options, in.query, in.key, in.value, kernel);
}

}  // namespace gainlens::kernels::testing
