#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::kernels {

struct TrainedLossOptions {
  double soft_cap = 0;  ///< logits z become cap tanh(z / cap); 0: no cap
  /// Bytes of logits that may exist at a time. With more than these, the logits of a block of rows are computed twice.
  std::int64_t logit_bytes = std::int64_t{32} << 20;
};

/// Mean of -log softmax(input head^T)[target] over the rows. The gradients are computed in the forward pass and kept:
/// there is no second one. There are no second derivatives.
///
/// In float32 on the CPU, logits exist as tiles of some rows and some outputs, in the cache of one core: first for the
/// totals of each row, then for the shares and both gradients. The logits of a block of rows are kept between the two,
/// or computed again if they are too many. The bits do not depend on the number of threads. Other types and devices use
/// library calls over blocks of rows, as many as `logit_bytes` allow.
///
/// @param input    [row, in]; at least one row
/// @param head     [out, in]
/// @param targets  int64 [row], each in [0, out)
/// @returns a scalar in the type of the input; NaN if a logit is NaN or infinite
at::Tensor trained_mean_loss(const at::Tensor& input, const at::Tensor& head, const at::Tensor& targets,
                             const TrainedLossOptions& options = {});

}  // namespace gainlens::kernels
