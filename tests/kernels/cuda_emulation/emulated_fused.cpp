#include "kernels/cuda_emulation/emulated_fused.h"

#include "kernels/cuda_emulation/ptx.h"

#include "kernels/cuda/fused_tiles.cuh"

#include "kernels/cuda/fused_rows.cuh"

#include "kernels/cuda/fused_kernel.cuh"

namespace gainlens::kernels::testing {
namespace {

template <typename Element, int width>
void launch(const FusedArguments& in) {
  using Layout = device::FusedLayout<Element, width>;
  device::run_grid({in.heads, static_cast<int>(fused_blocks(in) / in.heads)}, Layout::threads, Layout::shared_bytes,
                   [&] { device::FusedBlock<Element, width>(in, device::shared_memory()).run(); });
}

template <typename Element>
void launch_width(const FusedArguments& in) {
  if (in.width == 64) return launch<Element, 64>(in);
  if (in.width == 128) return launch<Element, 128>(in);
  launch<Element, 256>(in);
}

}  // namespace

void launch_emulated(const FusedArguments& in) {
  if (in.element == FusedElement::bfloat16) return launch_width<device::Bfloat16>(in);
  if (in.element == FusedElement::float16) return launch_width<device::Float16>(in);
  launch_width<device::Float32>(in);
}

}  // namespace gainlens::kernels::testing
