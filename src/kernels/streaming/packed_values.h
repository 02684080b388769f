#pragma once

#include "kernels/attention_inputs.h"
#include "kernels/streaming/attention_workspace.h"
#include "kernels/streaming/panel_products.h"

namespace gainlens::kernels {

/// Elements seen while packing.
struct PackedExtrema {
  Extrema key, value;
};

/// Packs some kv heads for the streaming kernel: fills everything of the workspace but the workers, and
/// `value_variance` [kv_head, head_dim] of dtype Real.
///
/// c is the mean of the first min(T, centre_keys) values: a mean over all would let later tokens change earlier bits.
/// Centring before squaring keeps S right where values share a large mean. Each dimension's unit is the size of the
/// first values about c, so that squares neither vanish nor overflow; where the others are 2^30 times larger or smaller
/// it is the size of the largest. Units are powers of two and change no bit of a result that lies between.
///
/// @param key, value  [kv_head, position, head_dim] of dtype Real, last dimension contiguous
template <typename Real>
PackedExtrema pack_keys_and_values(const at::Tensor& key, const at::Tensor& value, AttentionPlan::Workspace& workspace,
                                   at::Tensor value_variance);

}  // namespace gainlens::kernels
