#pragma once

#include "experiment/result_file.h"
#include "runfile/trained_run.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::experiment {

/// One training of an experiment: an arm, with a variant of the settings and a seed.
struct Job {
  std::string arm;
  std::string variant;  ///< name of a set of settings; empty: the settings of the run
  std::uint64_t seed = 0;
  std::filesystem::path folder;

  /// What results name it by, and its place in the folder of the run: "bft", or "bft/wide".
  std::string label() const { return variant.empty() ? arm : arm + "/" + variant; }
};

/// What is to be trained: each arm, with each variant and each seed.
struct Axes {
  std::vector<std::string> arms;
  std::vector<std::string> variants;  ///< "": the settings of the run; none: these alone
  std::uint64_t seed = 0;             ///< the first one
  std::int64_t seeds = 1;             ///< number of seeds: `seed`, `seed` + 1, ...
};

/// The jobs in the order arm, variant, seed. Their folders are OUT/ARM/seed-N, with variants OUT/ARM/VARIANT/seed-N.
std::vector<Job> jobs_of(const Axes& axes, const std::filesystem::path& out);

/// The seed in the name of a folder "seed-N"; empty for other names.
std::optional<std::uint64_t> seed_of_folder(std::string_view name);

/// @param seed, seeds  the first seed, and the number of seeds
/// @throws InvalidArgument  fewer seeds than one, too many, or seeds beyond 2^64 - 1
void check_seeds(std::uint64_t seed, std::int64_t seeds);

/// Whether a folder of a run can have this name: letters, digits, '-', '_', '.' and '+', the first one a letter or a
/// digit; not "seed-N" and not "training".
bool is_variant_name(std::string_view name);

/// How the jobs of an arm, with a variant, are proven, and what ends them.
struct FinishedRules {
  /// Reads the result of a job that has been done and proves its files. @throws InvalidArgument  they have changed
  std::function<Result(const Job&)> prove;
  std::int64_t epochs = 0;    ///< that are asked for
  std::int64_t patience = 0;  ///< epochs without improvement that end a training; 0: none do
};

/// An arm, with a variant, whose jobs are looked for.
struct SoughtArm {
  std::string arm, variant;  ///< as those of a Job
  FinishedRules rules;
};

/// Adds the arms, seeds and results of what is finished in the folder of a run. A training that has begun and not
/// reached its end has no result; a note says so. An arm without a folder is left out, and so is one whose folder holds
/// those of its variants alone.
/// @param arms  in the order of the run file
/// @throws InvalidArgument  as `prove`
void add_finished(runfile::TrainedRun& run, const std::filesystem::path& out, const std::vector<SoughtArm>& arms);

/// Which trainings a run has been asked for: `trainings.json`, the seeds of each arm, {"bft/wide": [0, 1]}.
inline constexpr const char* asked_name = "trainings.json";

/// Adds jobs to those that earlier calls were asked for. Calls for the same jobs give the same bytes in any order.
/// @throws InvalidArgument  as asked_jobs()
/// @throws RunFailed        the disk is full
void note_asked(const std::filesystem::path& run, const std::vector<Job>& jobs);

/// What a run was asked for, by arm and seed.
struct AskedJobs {
  std::vector<Job> jobs;
  bool are_known = true;  ///< false: the run is of an earlier version, and these are the jobs that have begun
};
/// @throws InvalidArgument  the file is damaged
AskedJobs asked_jobs(const std::filesystem::path& run);

}  // namespace gainlens::experiment
