#pragma once

#include "analyses/measured.h"

#include <string>

namespace gainlens::reports {

/// "+0.123 [+0.045, +0.201]"; a dash for what is missing.
std::string with_signed_interval(const analyses::Measured& value, const analyses::Maybe<analyses::Interval>& interval);

}  // namespace gainlens::reports
