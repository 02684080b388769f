#pragma once

#include "kernels/attention_inputs.h"
#include "kernels/cuda/fused_arguments.h"

#include <functional>

namespace gainlens::kernels {

/// Runs the fused kernel with these arguments.
/// @throws RunFailed  the kernel could not be started
using FusedLauncher = std::function<void(const FusedArguments& arguments)>;

/// attention_fused_cuda with a given way to run the kernel. Lays out the inputs on their device, launches the kernel,
/// and computes the queries that the kernel leaves to library calls.
QueryStatistics attention_fused(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
                                const at::Tensor& key, const at::Tensor& value, const FusedLauncher& launch);

}  // namespace gainlens::kernels
