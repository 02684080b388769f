#pragma once

#include "runfile/depth_run.h"

#include <string>

namespace gainlens::reports {

/// The precision of the stream by layer, at the longest length of the run.
std::string print_depth(const runfile::DepthRun& run);

}  // namespace gainlens::reports
