#pragma once

#include "experiment/result_file.h"
#include "runfile/checksums.h"
#include "runfile/recommend_run.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::recommend {

/// The files of a checkpoint whose checksums a training keeps.
runfile::KeptFiles checkpoint_files(const std::filesystem::path& folder);

/// Proves the files of a finished training: result.safetensors by its own checksum, config.json and model.safetensors
/// by those that the result holds. Of what earlier versions wrote, it is proven that the files can be read and that the
/// metrics are those of the ranks.
/// @param folder  ARM/seed-N of a run, or ARM/VARIANT/seed-N
/// @param label   "ARM", or "ARM/VARIANT"
/// @param faults  gets each file that is missing or has changed, and all are looked at; null: the first one is thrown
/// @returns  nothing, with `faults`: the result itself is missing or has changed
/// @throws InvalidArgument  a file is missing, broken or has changed; the message names it and says how to repair it
std::optional<experiment::StoredResult> prove_seed(const std::filesystem::path& folder, const std::string& label,
                                                   std::uint64_t seed,
                                                   std::vector<runfile::FileFault>* faults = nullptr);
/// Proves the metrics of a result that was read, and the files beside it.
void prove_files(const std::filesystem::path& folder, const experiment::StoredResult& stored,
                 std::vector<runfile::FileFault>* faults = nullptr);

/// The label of the training in a folder of a run: "ARM" of OUT/ARM/seed-N, "ARM/VARIANT" of OUT/ARM/VARIANT/seed-N.
std::string label_of_folder(const std::filesystem::path& folder);

/// The run folder OUT to which the folder OUT/ARM/seed-N or OUT/ARM/VARIANT/seed-N of a training belongs; empty: the
/// folder is none, or lies in no run.
std::optional<std::filesystem::path> run_of_checkpoint(const std::filesystem::path& folder);

/// Refuses a recommender run where one of its checkpoints is needed.
/// @throws InvalidArgument  names the folder of a training, if there is one
void refuse_run_for_checkpoint(const std::filesystem::path& path);

/// Proves a checkpoint as prove_seed(), of whatever arm and seed.
/// @returns  why nothing was compared: there is no result beside it, or one of an earlier version. Empty: all is proven
std::string prove_checkpoint(const std::filesystem::path& folder);

/// Refuses a run folder whose request.json this version cannot read. A folder without one is accepted.
/// @throws InvalidArgument  it is broken, or a newer version made it (its unknown keys are named)
void check_request_of(const std::filesystem::path& folder);

/// Reads a run, with its requests: request.json and that in run.h5.
/// @param path  a run folder or a run.h5
/// @throws InvalidArgument  as runfile::read_recommend_run() and check_request_of()
runfile::RecommendRun read_run(const std::filesystem::path& path);

/// A recommender run with what was proven about the files of its trainings.
struct ProvenRun {
  runfile::RecommendRun run;
  std::size_t compared = 0;  ///< finished trainings whose files have their checksums
  std::string unproven;      ///< a sentence on what was not compared; empty if everything was
};

/// Reads a run, and proves the files of the finished trainings in its folder.
/// @param path  a run folder or a run.h5
/// @param faults  where it is given, it gets what speaks against files of the trainings, and all are looked at
/// @throws InvalidArgument  as read_run(); without `faults` also as prove_seed(), or a training that run.h5 holds has
///     no result in its folder
ProvenRun read_proven_run(const std::filesystem::path& path, std::vector<runfile::FileFault>* faults = nullptr);

}  // namespace gainlens::recommend
