#include "kernels/linear/product_kernel.h"

#include "core/error.h"
#include "kernels/instruction_limit.h"
#include "kernels/linear/pair_strips.h"
#include "kernels/linear/tile_kernels.h"

#include <ATen/native/CPUBlas.h>
#include <fmt/format.h>

namespace gainlens::kernels {
namespace {

std::int64_t vector_bits() {
  return tile_kernels().columns / 2 * 32;
}

/// Whether AVX-512 may be used. Without our vector code of it (instruction_limit.h) that of oneDNN is left out too.
bool has_avx512() {
#ifdef __x86_64__
  return vector_bits() >= 512;
#else
  return false;
#endif
}

bool has_amx() {
  return has_avx512() && instruction_limit() == InstructionLimit::none &&
         at::native::cpublas::could_pack(at::kBFloat16);
}

}  // namespace

std::string_view name_of(ProductKernel kernel) {
  switch (kernel) {
    case ProductKernel::strips:
      return "strips";
    case ProductKernel::widened_strips:
      return "widened strips";
    case ProductKernel::pair_strips:
      return "strips of pairs";
    case ProductKernel::brgemm:
      return "oneDNN brgemm";
    case ProductKernel::libtorch:
      return "libtorch";
  }
  throw_internal_error(__FILE__, __LINE__, "a product kernel without a name");
}

bool runs_here(ProductKernel kernel, c10::ScalarType type) {
  switch (kernel) {
    case ProductKernel::strips:
      return type == at::kFloat;
    case ProductKernel::widened_strips:
      return type == at::kBFloat16 || type == at::kHalf;
    case ProductKernel::pair_strips:
      return type == at::kBFloat16 && has_avx512() && instruction_limit() <= InstructionLimit::avx512_bf16 &&
             has_pair_strips();
    case ProductKernel::brgemm:
      // Without AMX, libtorch replaces the missing micro-kernel by a plain loop.
      if (type == at::kBFloat16) return has_amx();
      return type == at::kFloat && has_avx512();
    case ProductKernel::libtorch:
      return true;
  }
  throw_internal_error(__FILE__, __LINE__, "a product kernel that no one knows");
}

ProductKernel product_kernel(c10::ScalarType type) {
  if (type == at::kFloat) return has_avx512() ? ProductKernel::brgemm : ProductKernel::strips;
  if (type == at::kBFloat16) {
    if (runs_here(ProductKernel::brgemm, type)) return ProductKernel::brgemm;
    if (runs_here(ProductKernel::pair_strips, type)) return ProductKernel::pair_strips;
  }
  if (type == at::kBFloat16 || type == at::kHalf) return ProductKernel::widened_strips;
  return ProductKernel::libtorch;
}

ProductKernel training_product_kernel() {
#ifdef __x86_64__
  if (has_avx512() && __builtin_cpu_is("intel") == 0) return ProductKernel::strips;
#endif
  return ProductKernel::libtorch;
}

std::string describe_processor() {
#ifdef __x86_64__
  const bool slow = vector_bits() < 256;
#else
  const bool slow = false;
#endif
  const bool limited = instruction_limit() != InstructionLimit::none;
  return fmt::format("vectors of {} bits{}{}; products: float32 by {}, bfloat16 by {}, float16 by {}, training by {}",
                     vector_bits(), slow ? " (no AVX2: several times slower)" : "",
                     limited ? " (limited by GAINLENS_INSTRUCTIONS)" : "", name_of(product_kernel(at::kFloat)),
                     name_of(product_kernel(at::kBFloat16)), name_of(product_kernel(at::kHalf)),
                     name_of(training_product_kernel()));
}

}  // namespace gainlens::kernels
