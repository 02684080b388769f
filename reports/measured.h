#pragma once

#include "analyses/measured.h"

namespace gainlens::reports {

using analyses::Interval, analyses::Maybe, analyses::Measured;

}  // namespace gainlens::reports
