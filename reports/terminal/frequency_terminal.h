#pragma once

#include "analyses/frequency_reading.h"

#include <string>

namespace gainlens::reports {

/// The result for one arm as a text table for a terminal, ended by a line break. For programs: analyses::to_json().
std::string print_frequency(const analyses::FrequencyReading& reading);

}  // namespace gainlens::reports
