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

/// What a job costs, in epochs: an arm without training ranks the test items once and has none.
double cost_of(const SeedJob& job, const Settings& settings);

/// Shows the progress of several trainings on one line. The unit of cost is an epoch.
class SharedProgress {
 public:
  SharedProgress(double cost, bool quiet) : progress_("train recommend", cost, "epochs", quiet) {}

  void epoch_done(const std::string& label) { advance(1, 1, label); }
  /// A job without epochs.
  void ranked(double cost, const std::string& label) { advance(cost, 0, label); }
  /// Epochs, or whole jobs, that need not be done.
  void skip(double cost, const std::string& label) {
    const std::lock_guard lock(mutex_);
    progress_.skip(cost, label);
  }

 private:
  void advance(double cost, double epochs, const std::string& label) {
    const std::lock_guard lock(mutex_);
    progress_.advance(cost, epochs, label);
  }

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
