#pragma once

#include "experiment/job.h"

#include <filesystem>
#include <vector>

namespace gainlens::experiment {

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
