#pragma once

#include "kernels/cuda/fused_arguments.h"

namespace gainlens::kernels::testing {

/// A FusedLauncher that runs the fused kernel's own source on the host.
void launch_emulated(const FusedArguments& arguments);

}  // namespace gainlens::kernels::testing
