#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::kernels {

struct RowLossOptions {
  double soft_cap = 0;  ///< logits z become cap tanh(z / cap); 0: no cap
  /// Bytes of logits that may exist at a time. If all fit, the backward pass does not compute them again.
  std::int64_t logit_bytes = std::int64_t{64} << 20;
};

/// -log softmax(input head^T)[target] of each row, with gradients: for losses that are functions of these, over few
/// rows. The mean over many rows is faster by trained_mean_loss(). Logits exist for a block of rows alone. The backward
/// pass turns them into gradients in place, so it can run once. There are no second derivatives.
///
/// @param input    [row, in], of any floating type, on any device; at least one row
/// @param head     [out, in]
/// @param targets  int64 [row], each in [0, out)
/// @returns [row], float64 for float64 inputs, else float32; NaN if a logit is NaN or infinite
at::Tensor row_losses(const at::Tensor& input, const at::Tensor& head, const at::Tensor& targets,
                      const RowLossOptions& options = {});

}  // namespace gainlens::kernels
