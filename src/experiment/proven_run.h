#pragma once

#include "experiment/result_file.h"
#include "runfile/checksums.h"
#include "runfile/experiment_run.h"

#include <cstdint>
#include <filesystem>
#include <optional>
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
  files,    ///< those too, as prove_result(): what is wrong is noted, and all files are looked at
};

/// Reads a run, and proves its numbers: run.h5 by the checksum beside it, its request by request.json, and every
/// finished training by the result in its folder, whose own checksum is compared, and whose scores, metrics and curves
/// must be those of run.h5. What is not there is said.
/// @param path  a run folder or a run.h5
/// @throws InvalidArgument  as runfile::read_experiment_run(); with TrainingProof::numbers also a file that is there
///     and says something else
ProvenRun read_proven_run(const std::filesystem::path& path, TrainingProof proof = TrainingProof::numbers);

/// Reads the result of a finished training, and proves it by its own checksum and the files beside it, such as the
/// weights, by those that it keeps. A training that keeps none has no checkpoint.
/// @param folder  of the training
/// @param label   Job::label()
/// @param faults  gets each file that is missing or has changed, and all are looked at; null: the first one is thrown
/// @returns  nothing, with `faults`: the result itself is missing or has changed
/// @throws InvalidArgument  as load_result(); a file is missing or has changed. The message names it and says how to
///     repair it
std::optional<StoredResult> prove_result(const std::filesystem::path& folder, const std::string& label,
                                         std::uint64_t seed, std::vector<runfile::FileFault>* faults = nullptr);
/// Proves the files beside a result that was read.
/// @returns  false, with `faults`: its list of checksums is none
bool prove_files(const std::filesystem::path& folder, const StoredResult& stored,
                 std::vector<runfile::FileFault>* faults = nullptr);

/// Proves the files of a model that a training has left in a folder, before they are used: by the checksums that its
/// result keeps, or by files.sha256. A folder without either is accepted, and so is a file.
/// @throws InvalidArgument  a file is missing or has changed; the result or the list is broken
void prove_checkpoint_files(const std::filesystem::path& folder);

}  // namespace gainlens::experiment
