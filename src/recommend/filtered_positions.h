#pragma once

#include "core/filtered_positions.h"
#include "data/leave_one_out.h"
#include "recommend/backbone.h"

#include <cstdint>
#include <string>

namespace gainlens::recommend {

/// What the filter of a model does at the positions that it reads in a ranking: the same pass, observed. A filter with
/// a running Jacobian takes the mean of its training, as in the ranking.
/// @param where          names the model in messages
/// @param users_at_once  changes no number but by rounding
/// @throws InvalidArgument  the model has no Kalman gain (names its arm), or its filter is not in force
/// @throws RunFailed        a gain or a precision is NaN or infinite
FilteredPositions filtered_positions(Backbone& model, const data::LeaveOneOut& split, data::HeldOut held_out,
                                     const std::string& where, std::int64_t users_at_once = 512);

}  // namespace gainlens::recommend
