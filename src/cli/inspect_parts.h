#pragma once

#include "cli/findings.h"

#include <filesystem>
#include <string>

namespace gainlens::cli {

/// For which use a checkpoint's memory is estimated.
struct MemoryQuestion {
  std::string length;  ///< tokens, as in "8k"; empty: all of the model's positions
  std::string dtype;
};

/// Adds what is found in a checkpoint until something is wrong with it.
/// @throws InvalidArgument  what makes it unusable
void inspect_checkpoint(const std::filesystem::path& path, const MemoryQuestion& question, Findings& findings);

/// The same of a run folder or run.h5.
void inspect_run(const std::filesystem::path& path, Findings& findings);

}  // namespace gainlens::cli
