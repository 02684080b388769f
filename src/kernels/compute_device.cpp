#include "kernels/compute_device.h"

#include "core/check.h"
#include "core/device_name.h"
#include "core/error.h"

#include <ATen/Context.h>

#include <dlfcn.h>

#include <optional>
#include <string>

namespace gainlens::kernels {
namespace {

/// Adds the GPU to libtorch. It must come before anything asks libtorch for GPUs: the answer is kept.
void load_gpu_part(std::string_view name) {
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
  const char* const reason = dlerror();
  throw_invalid(
      "--device: '{}'; libtorch's part for GPUs cannot be loaded: {}; docs/gpu.md says what to install (or use "
      "--device cpu)",
      name, printable(reason == nullptr ? "no reason is given" : reason, 200));
}

}  // namespace

at::Device compute_device(std::string_view name) {
  const std::optional<int> number = device_number(name);
  CHECK(number, "--device: '{}'; must be cpu or cuda:N", printable(name, 40));
  if (*number < 0) return at::kCPU;
  load_gpu_part(name);
  const auto count = at::detail::getCUDAHooks().getNumGPUs();
  CHECK(count > 0, "--device: '{}'; no GPU can be used here; use --device cpu", name);
  CHECK(*number < count, "--device: '{}'; the GPUs here are cuda:0 to cuda:{}", name, count - 1);
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(false);
  context.setAllowFP16ReductionCuBLAS(false);
  context.setAllowBF16ReductionCuBLAS(false);
  return {at::kCUDA, static_cast<c10::DeviceIndex>(*number)};
}

}  // namespace gainlens::kernels
