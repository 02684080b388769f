#pragma once

#include "analyses/sink_vs_k.h"

#include <string>

namespace gainlens::reports {

/// The result as a text table for a terminal, ended by a line break. For programs: analyses::to_json().
std::string print_sink_vs_k(const analyses::SinkVsK& result);

}  // namespace gainlens::reports
