// The fused kernel on the inputs' device and its current stream.

#include "kernels/cuda/attention_fused.h"

#include "core/check.h"
#include "kernels/cuda/fused_arguments.h"
#include "kernels/cuda/fused_call.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace gainlens::kernels {

QueryStatistics attention_fused_cuda(const AttentionOptions& options, const AttentionShape& shape,
                                     const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  CHECK(query.is_cuda(),
        "attention_statistics: the inputs are on {}; the fused CUDA kernel needs them on a CUDA device",
        query.device().str());
  const c10::cuda::CUDAGuard device(query.device());
  return attention_fused(options, shape, query, key, value, [](const FusedArguments& arguments) {
    const char* failure = launch_fused(arguments, c10::cuda::getCurrentCUDAStream().stream());
    if (failure != nullptr) throw_run_failed("attention_statistics: the fused CUDA kernel did not start: {}", failure);
  });
}

bool fused_cuda_compiled() {
  return true;
}

}  // namespace gainlens::kernels
