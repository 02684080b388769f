#pragma once

#include "kernels/attention_inputs.h"

namespace gainlens::kernels {

/// All statistics in one CUDA kernel for sm_80 and newer. It computes products on tensor cores in float32 sums, which
/// join float64 sums every 256 keys. It copies the next tiles of keys and values while it works on the current ones.
/// Key 0 is kept out of the sums, and values are centred. Of the results of size [head, T, head_dim], only those that
/// are asked for are written.
///
/// Precision: q k^T is exact except for float32 sums. Weights and v - c are rounded to bfloat16 (relative error 2^-9)
/// before they are multiplied. v - c is squared after this rounding, and its square is exact. Moments are divided by
/// the sum of the rounded weights. So e and S are the moments of slightly different weights and values: the relative
/// error of S is about 2^-8. n_eff, entropy and masses use weights in float32. float32 inputs are computed without
/// tensor cores; this is slow, and meant for checking.
///
/// Sums: the products of 256 keys (16 additions of 16 products in a tensor core) are summed in float32, then added in
/// float64 to sums in global memory, at most 256 MiB for one launch. For float32 inputs, the products of each tile of
/// 16 or 32 keys are summed in float32. So the error of S by cancellation does not grow with T. It is at most 4e-6 max
/// (v - c)^2, as in attention_statistics.h, if a tensor core rounds to nearest. If a tensor core truncates, the error
/// is up to twice as large.
///
/// The source passes its tests on the host, thread by thread (tests/kernels/cuda_emulation), and on a GPU. It rounds
/// weights and values, so AttentionBackend::automatic never chooses it. In causal attention, attention_composed_first
/// computes the queries before centre_keys.
/// @param options  without `sequences`. Inputs and options must have been checked, and inputs must be on a CUDA device.
/// @throws NotCompiled      this build has no CUDA
/// @throws InvalidArgument  float64, head_dim above 256, values of another width than keys, or more than 4,000,000
///     positions
/// @throws RunFailed        the kernel could not be started
QueryStatistics attention_fused_cuda(const AttentionOptions& options, const AttentionShape& shape,
                                     const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

/// Whether this build has attention_fused_cuda.
bool fused_cuda_compiled();

}  // namespace gainlens::kernels
