#pragma once

#include "analyses/checks/training_checks.h"
#include "runfile/checksum_list.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace gainlens::cli {

/// What is known of the files of trainings.
struct ProvenFiles {
  std::string unproven;                    ///< what was not compared, as sentences; empty: all was
  std::vector<runfile::FileFault> faults;  ///< what speaks against them
};

/// Notes what the files of trainings say.
/// @param proof  may throw what speaks against them
void note_files(analyses::CheckedTrainings& checked, const std::function<ProvenFiles()>& proof);

/// The folder of one training of a run.
struct GivenTraining {
  std::filesystem::path run, folder;
  std::string label;  ///< "ARM", or "ARM/VARIANT"
  std::uint64_t seed = 0;
};

}  // namespace gainlens::cli
