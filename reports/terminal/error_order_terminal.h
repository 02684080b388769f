#pragma once

#include "analyses/error_order.h"

#include <string>

namespace gainlens::reports {

/// What `gainlens error-by-precision` prints of an arm.
std::string print_error_order(const analyses::ErrorOrderReading& reading);

}  // namespace gainlens::reports
