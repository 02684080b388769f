#pragma once

#include "runfile/intervention_run.h"

#include <filesystem>
#include <string>

namespace gainlens::cli {

/// What the losses of a run on a text are of: '8 documents of 512 tokens', or the last tokens of these.
/// @throws InvalidArgument  the stored request does not say it
std::string measured_tokens(const runfile::InterventionRun& run, const std::filesystem::path& path);

}  // namespace gainlens::cli
