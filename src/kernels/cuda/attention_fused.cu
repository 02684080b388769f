// Compiles the fused kernel for the device and launches it.

#include "kernels/cuda/ptx.cuh"

#include "kernels/cuda/fused_tiles.cuh"

#include "kernels/cuda/fused_rows.cuh"

#include "kernels/cuda/fused_kernel.cuh"

#include "kernels/cuda/fused_arguments.h"

#include <cuda_runtime.h>

namespace gainlens::kernels {
namespace {

/// Two blocks for each multiprocessor if there are enough registers: then one block's softmax runs while the other
/// block computes products.
template <typename Element, int width>
__global__ void __launch_bounds__(device::FusedLayout<Element, width>::threads, width > 128 ? 1 : 2)
    fused_kernel(const __grid_constant__ FusedArguments in) {
  device::FusedBlock<Element, width>(in, device::shared_memory()).run();
}

template <typename Element, int width>
const char* launch(const FusedArguments& in, cudaStream_t stream) {
  using Layout = device::FusedLayout<Element, width>;
  const auto kernel = fused_kernel<Element, width>;
  cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Layout::shared_bytes);
  if (error == cudaSuccess) {
    kernel<<<dim3(in.heads, static_cast<unsigned>(fused_blocks(in) / in.heads)), Layout::threads, Layout::shared_bytes,
             stream>>>(in);
    error = cudaGetLastError();
  }
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

template <typename Element>
const char* launch_width(const FusedArguments& in, cudaStream_t stream) {
  if (in.width == 64) return launch<Element, 64>(in, stream);
  if (in.width == 128) return launch<Element, 128>(in, stream);
  return launch<Element, 256>(in, stream);
}

}  // namespace

const char* launch_fused(const FusedArguments& in, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  switch (in.element) {
    case FusedElement::bfloat16:
      return launch_width<device::Bfloat16>(in, cuda_stream);
    case FusedElement::float16:
      return launch_width<device::Float16>(in, cuda_stream);
    case FusedElement::float32:
      return launch_width<device::Float32>(in, cuda_stream);
  }
  return "unknown element";
}

}  // namespace gainlens::kernels
