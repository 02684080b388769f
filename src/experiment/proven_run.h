#pragma once

#include "runfile/checksum_list.h"
#include "runfile/experiment_run.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::experiment {

/// The run of an experiment, with what could not be proven of it.
struct ProvenRun {
  runfile::ExperimentRun run;
  std::vector<std::string> unproven;            ///< a sentence each; empty if everything was proven
  std::vector<runfile::FileFault> faults = {};  ///< with TrainingProof::files: what speaks against the run
};

/// The folder of a training of a run; empty: the label in its run.h5 is none of a folder.
/// @param label  "ARM", or "ARM/VARIANT"
std::filesystem::path folder_of_training(const std::filesystem::path& run, const std::string& label,
                                         std::uint64_t seed);

/// How far the trainings of a run are proven.
enum class TrainingProof {
  numbers,  ///< the result of each; checkpoints are not read
  files,    ///< those too, as examine_result(): what is wrong is noted, and all files are looked at
};

/// Reads a run, and proves its numbers: run.h5 by the checksum beside it, its request by request.json, and every
/// finished training by the result in its folder, whose own checksum is compared, and whose scores, metrics and curves
/// must be those of run.h5. What is not there is said.
/// @param path  a run folder or a run.h5
/// @throws InvalidArgument  as runfile::read_experiment_run(); with TrainingProof::numbers also a file that is there
///     and says something else
ProvenRun read_proven_run(const std::filesystem::path& path, TrainingProof proof = TrainingProof::numbers);

}  // namespace gainlens::experiment
