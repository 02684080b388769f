#pragma once

#include "kernels/cuda/fused_arguments.h"

namespace gainlens::kernels {

/// Puts the kernel on a CUDA stream of the current device. @returns  null, or what went wrong
const char* launch_fused(const FusedArguments& in, void* stream);

}  // namespace gainlens::kernels
