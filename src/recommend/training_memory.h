#pragma once

#include "data/leave_one_out.h"
#include "recommend/settings.h"

#include <cstdint>

namespace gainlens::recommend {

/// An estimate of the bytes that one training needs at its peak, besides the program itself: parameters with gradients
/// and moments, the activations of the largest possible batch, the logits of the loss, and a block of a ranking.
std::uint64_t training_memory(const Settings& settings, const data::LeaveOneOut& split, Arm arm = Arm::plain);

/// Refuses a training that does not fit into the available memory. Does nothing if that is not known.
/// @param trainings  side by side
/// @throws InvalidArgument  it does not fit; the message names the largest batch that does, if there is one
void check_memory(const Settings& settings, const data::LeaveOneOut& split, std::int64_t trainings,
                  Arm arm = Arm::plain);

}  // namespace gainlens::recommend
