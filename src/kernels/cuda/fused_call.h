#pragma once

#include "kernels/attention_inputs.h"
#include "kernels/cuda/fused_arguments.h"

#include <functional>

namespace gainlens::kernels {

/// Runs the fused kernel over what the arguments point at. @throws RunFailed  it could not be started
using FusedLauncher = std::function<void(const FusedArguments& arguments)>;

/// attention_fused_cuda with another way to run the kernel: lays out the inputs on their device, launches, and adds
/// what the kernel leaves to library calls.
QueryStatistics attention_fused(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
                                const at::Tensor& key, const at::Tensor& value, const FusedLauncher& launch);

}  // namespace gainlens::kernels
