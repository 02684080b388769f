#pragma once

#include "analyses/synthetic_run.h"
#include "core/atomic_file.h"

#include <filesystem>
#include <map>
#include <string>

namespace gainlens::testing {

/// The bytes of every file below a folder, by its path in the folder.
inline std::map<std::string, std::string> contents(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      files[std::filesystem::relative(entry.path(), folder).string()] = read_text_file(entry.path());
  }
  return files;
}

/// The run of another model.
inline SyntheticRun other_model(SyntheticRun run) {
  run.family = "other";
  run.weights = 'e';
  run.gated = !run.gated;
  return run;
}

}  // namespace gainlens::testing
