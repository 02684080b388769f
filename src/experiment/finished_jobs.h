#pragma once

#include "experiment/job.h"
#include "experiment/result.h"
#include "runfile/trained_run.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace gainlens::experiment {

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

}  // namespace gainlens::experiment
