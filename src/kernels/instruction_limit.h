#pragma once

namespace gainlens::kernels {

/// The best instructions that our vector code may use, from the best on.
enum class InstructionLimit {
  none,         ///< all that the processor has
  avx512_bf16,  ///< no AMX
  avx512,       ///< nor products of bfloat16
  avx2,
  sse4,
};

/// The limit in the environment variable GAINLENS_INSTRUCTIONS (avx512_bf16, avx512, avx2 or sse4), with which a
/// processor computes as an older one does: the same kernels, and the same bits of our own code. A limit above what the
/// processor has changes nothing. libtorch has variables of its own (docs/performance.md). Read once, when the first
/// vector code is chosen.
/// @throws InvalidArgument  another value
InstructionLimit instruction_limit();

}  // namespace gainlens::kernels
