#include "kernels/instruction_limit.h"

#include "core/check.h"
#include "core/environment.h"
#include "core/error.h"

#include "hwy/targets.h"

#include <optional>
#include <string>

namespace gainlens::kernels {
namespace {

InstructionLimit read_limit() {
  const std::optional<std::string> value = process_environment()("GAINLENS_INSTRUCTIONS");
  if (!value || value->empty()) return InstructionLimit::none;
  if (*value == "avx512_bf16") return InstructionLimit::avx512_bf16;
  if (*value == "avx512") return InstructionLimit::avx512;
  if (*value == "avx2") return InstructionLimit::avx2;
  CHECK(*value == "sse4", "GAINLENS_INSTRUCTIONS: '{}'; must be avx512_bf16, avx512, avx2 or sse4",
        printable(*value, 40));
  return InstructionLimit::sse4;
}

InstructionLimit apply_limit() {
  const InstructionLimit limit = read_limit();
  // In Highway the better instruction sets have the lower bits.
#ifdef __x86_64__
  if (limit == InstructionLimit::avx2) hwy::DisableTargets(HWY_AVX2 - 1);
  if (limit == InstructionLimit::sse4) hwy::DisableTargets(HWY_SSE4 - 1);
#endif
  return limit;
}

}  // namespace

InstructionLimit instruction_limit() {
  static const InstructionLimit limit = apply_limit();
  return limit;
}

}  // namespace gainlens::kernels
