#pragma once

#include "core/user_attention.h"
#include "data/leave_one_out.h"
#include "recommend/backbone.h"

#include <cstdint>
#include <string>

namespace gainlens::recommend {

/// The attention of every head at the position from which a model ranks, for each user of a split: the pass of a
/// ranking, watched. The statistics are those of kernels::attention_statistics() in float64, with the biases that the
/// model adds to its scores, nu = 1, sigma0^2 = 1/d and lambda = 1, as in a sweep of a language model.
/// A gain that acts behind the output projection belongs to no head: each head of the layer then has the mean over all
/// dimensions.
/// @param where          names the model in messages
/// @param users_at_once  changes no number but by rounding
/// @throws InvalidArgument  a layer has no single weight for each key (it has no site `attn.hook_pattern`)
/// @throws RunFailed        a number is NaN or infinite
UserAttention user_attention(Backbone& model, const data::LeaveOneOut& split, data::HeldOut held_out,
                             const std::string& where, std::int64_t users_at_once = 512);

}  // namespace gainlens::recommend
