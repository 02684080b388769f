#pragma once

#include "core/filtered_positions.h"
#include "data/leave_one_out.h"
#include "recommend/settings.h"

#include <cstdint>
#include <string>

namespace gainlens::recommend {

/// What the filter of a model is at the inputs of a ranking before its training: at step 0. The weights are those that
/// the training of this arm and seed began with. The filter is in force, also if the training has a warm-up; tau_range,
/// the factors of the Jacobian and the running means follow from the first batch, as at a first step.
/// @param arm    one whose gain follows from precisions
/// @param where  names the model in messages
/// @throws InvalidArgument  as filtered_positions() and RecommendTask
FilteredPositions untrained_positions(const Settings& settings, Arm arm, std::uint64_t seed,
                                      const data::LeaveOneOut& split, data::HeldOut held_out, const std::string& where);

}  // namespace gainlens::recommend
