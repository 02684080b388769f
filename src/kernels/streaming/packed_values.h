#pragma once

#include "kernels/attention_inputs.h"
#include "kernels/streaming/attention_workspace.h"
#include "kernels/streaming/panel_products.h"

namespace gainlens::kernels {

/// Extrema of the packed keys and values.
struct PackedExtrema {
  Extrema key, value;
};

/// Packs some kv heads for the streaming kernel. Fills the whole workspace except the workers, and fills
/// `value_variance` [kv_head, value_dim] of dtype Real.
///
/// c is the mean of the first min(T, centre_keys) values: a mean over all values would let later tokens change the bits
/// of earlier queries. Subtracting c before squaring keeps S accurate if values have a large common mean. The unit of a
/// dimension is the size of its first values minus c, so that squares neither underflow nor overflow. If other values
/// are 2^30 times larger or smaller, the unit is the size of the largest value minus c. Units are powers of two: within
/// the range of Real they do not change a bit of a result.
///
/// @param key    [kv_head, position, key_dim] of dtype Real, last dimension contiguous
/// @param value  [kv_head, position, value_dim], likewise
template <typename Real>
PackedExtrema pack_keys_and_values(const at::Tensor& key, const at::Tensor& value, AttentionPlan::Workspace& workspace,
                                   at::Tensor value_variance);

}  // namespace gainlens::kernels
