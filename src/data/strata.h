#pragma once

#include "core/strata.h"
#include "data/leave_one_out.h"

namespace gainlens::data {

/// What the strata of core/strata.h are made of.
UserCounts user_counts(const LeaveOneOut& split);

}  // namespace gainlens::data
