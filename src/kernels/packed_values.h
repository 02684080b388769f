#pragma once

#include "kernels/attention_inputs.h"
#include "kernels/attention_workspace.h"

namespace gainlens::kernels {

/// Fills `packed`, `centre` and `inverse_variance` of the workspace, and `value_variance` [kv_head, head_dim] of dtype Real.
///
/// c is the mean of the first min(T, centre_keys) values: a mean over all would let later tokens change earlier bits. Centring before
/// squaring keeps S right where values share a large mean.
template <typename Real>
void pack_values(const AttentionShape& shape, const at::Tensor& value, AttentionPlan::Workspace& workspace, at::Tensor& value_variance);

}  // namespace gainlens::kernels
