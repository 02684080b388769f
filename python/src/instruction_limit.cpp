// As src/kernels/instruction_limit.cpp, without the libraries that its messages need.

#include "kernels/instruction_limit.h"

#include "hwy/targets.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace gainlens::kernels {
namespace {

InstructionLimit apply_limit() {
  const char* value = std::getenv("GAINLENS_INSTRUCTIONS");
  const std::string limit = value == nullptr ? "" : value;
  if (limit.empty()) return InstructionLimit::none;
  if (limit == "avx512_bf16") return InstructionLimit::avx512_bf16;
  if (limit == "avx512") return InstructionLimit::avx512;
  if (limit != "avx2" && limit != "sse4")
    throw std::runtime_error("GAINLENS_INSTRUCTIONS: must be avx512_bf16, avx512, avx2 or sse4");
#ifdef __x86_64__
  hwy::DisableTargets((limit == "avx2" ? HWY_AVX2 : HWY_SSE4) - 1);
#endif
  return limit == "avx2" ? InstructionLimit::avx2 : InstructionLimit::sse4;
}

}  // namespace

InstructionLimit instruction_limit() {
  static const InstructionLimit limit = apply_limit();
  return limit;
}

}  // namespace gainlens::kernels
