#pragma once

#include "kernels/attention_inputs.h"

namespace gainlens::kernels {

/// All statistics in one CUDA kernel for sm_80 and newer: tensor-core products whose float32 sums join float64 ones
/// every 256 keys, tiles of keys and values copied while the last ones are worked on, key 0 apart, values centred.
/// Nothing of size [head, T, head_dim] is written but what is asked for.
///
/// Precision: q k^T is exact up to float32 sums. Weights and v - c are rounded to bfloat16 (relative 2^-9) before their
/// products; the squares of v - c are taken of the rounded numbers and exactly, and moments are divided by the sum of
/// the rounded weights. e and S are therefore the moments of slightly other weights and values: S is good to about 2^-8
/// of itself. n_eff, entropy and masses use weights in float32. float32 inputs are computed without tensor cores,
/// slowly, as a check.
///
/// Sums: the products of 256 keys (16 additions of 16 products in a tensor core) are summed in float32, then added in
/// float64 to sums in global memory, at most 256 MiB for a launch; of float32 inputs those of each tile of 16 or 32
/// keys. So what cancellation costs S does not grow with T: at most 4e-6 max (v - c)^2 as in attention_statistics.h, if
/// a tensor core rounds to nearest; one that cuts off loses up to twice that.
///
/// Its source has passed its tests on the host, thread by thread (tests/kernels/cuda_emulation), and has not run on a
/// GPU yet: AttentionBackend::automatic never takes it. The queries before centre_keys of causal attention are left to
/// attention_composed_first.
/// @param options  without `sequences`; inputs and options have been checked, inputs lie on a CUDA device
/// @throws NotCompiled      this build has no CUDA
/// @throws InvalidArgument  float64, head_dim above 256, or more than 4,000,000 positions
/// @throws RunFailed        the kernel could not be started
QueryStatistics attention_fused_cuda(const AttentionOptions& options, const AttentionShape& shape,
                                     const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

/// Whether attention_fused_cuda is there.
bool fused_cuda_compiled();

}  // namespace gainlens::kernels
