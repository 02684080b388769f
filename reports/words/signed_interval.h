#pragma once

#include "reports/measured.h"

#include <string>

namespace gainlens::reports {

/// "+0.123 [+0.045, +0.201]"; a dash for what is missing.
std::string with_signed_interval(const Measured& value, const Maybe<Interval>& interval);

}  // namespace gainlens::reports
