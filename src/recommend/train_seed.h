#pragma once

#include "core/progress.h"
#include "recommend/train_recommend.h"
#include "training/replicas.h"

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>

namespace gainlens::recommend {

/// One arm with one seed.
struct SeedJob {
  std::string arm;
  std::uint64_t seed;
  std::filesystem::path folder;
};

/// Shows the progress of several trainings on one line.
class SharedProgress {
 public:
  SharedProgress(std::int64_t epochs, bool quiet)
      : progress_("train recommend", static_cast<double>(epochs), "epochs",
                  quiet ? Progress::Style::quiet : Progress::Style::automatic) {}

  void advance(std::int64_t epochs, const std::string& label) {
    const std::lock_guard lock(mutex_);
    progress_.advance(static_cast<double>(epochs), static_cast<double>(epochs), label);
  }

 private:
  std::mutex mutex_;
  Progress progress_;
};

/// What the jobs of one call share.
struct SeedJobs {
  const RecommendRequest& request;
  const data::LeaveOneOut& split;
  const Json& document;  ///< request_of()
  SharedProgress& progress;
};

/// Trains one arm with one seed to its end, or continues it, and evaluates the best epoch on the test items. Does
/// nothing if that has been done. Baselines need no training; they are evaluated.
/// @param replicas  the processes that work on this job together; rank 0 writes the folder
/// @returns  for rank 0; without metrics for the other processes
SeedOutcome run_job(const SeedJob& job, const SeedJobs& jobs, training::Replicas& replicas);

/// The outcome of a job that has been done, by whatever process.
/// @param items  of the catalogue
SeedOutcome stored_outcome(const SeedJob& job, std::int64_t items);

}  // namespace gainlens::recommend
