// Replaces cuda/attention_fused_cuda.cpp in builds without CUDA.

#include "kernels/cuda/attention_fused.h"

namespace gainlens::kernels {

QueryStatistics attention_fused_cuda(const AttentionOptions&, const AttentionShape&, const at::Tensor&,
                                     const at::Tensor&, const at::Tensor&) {
  throw NotCompiled(
      "attention_statistics: this build has no fused CUDA kernel; configure with -DGAINLENS_CUDA=ON (preset cuda), or "
      "use the composed backend");
}

bool fused_cuda_compiled() {
  return false;
}

}  // namespace gainlens::kernels
