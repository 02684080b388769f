#pragma once

#include "kernels/cuda/fused_arguments.h"

namespace gainlens::kernels {

/// Starts the kernel on a CUDA stream of the current device.
/// @returns  null on success, else what went wrong
const char* launch_fused(const FusedArguments& in, void* stream);

}  // namespace gainlens::kernels
