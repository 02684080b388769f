#pragma once

#include "core/progress.h"
#include "experiment/job.h"
#include "experiment/result_file.h"
#include "training/replicas.h"
#include "training/training_folder.h"

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::experiment {

/// What several processes share.
enum class Spread {
  batches,  ///< each works on a part of every batch of one training
  seeds     ///< each does whole trainings
};

/// What is trained, and how its jobs share the machine.
struct Plan {
  std::string title;  ///< of the progress: "train recommend"
  Axes axes;
  std::filesystem::path out;       ///< the folder of the run
  training::RequestRules rules;    ///< of its request
  std::int64_t threads = 1;        ///< of the whole call
  std::int64_t seeds_at_once = 0;  ///< trainings side by side; 0: as many as threads, at most all
  Spread spread = Spread::batches;
  bool quiet = false;
};

/// How trainings share the threads.
struct Sharing {
  std::int64_t seeds_at_once = 1, threads_of_seed = 1;
};

/// Shows the progress of several trainings on one line. The unit of cost is an epoch. For several threads.
class SharedProgress {
 public:
  SharedProgress(const std::string& title, double cost, bool quiet)
      : progress_(title, cost, "epochs", quiet), quiet_(quiet) {}

  /// Whether nobody is told how the work goes on.
  bool quiet() const { return quiet_; }

  void epoch_done(const std::string& label) { advance(1, 1, label); }
  /// A job without epochs.
  void evaluated(double cost, const std::string& label) { advance(cost, 0, label); }
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
  bool quiet_;
};

/// A job with all that it needs.
struct Work {
  const Job& job;
  const Json& request;  ///< everything that determines its result
  SharedProgress& progress;
  training::Replicas& replicas;  ///< the processes that work on it together; rank 0 writes the folder
};

/// What an experiment is about: it trains one job, and says what a job is. Several threads call it.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Whether the job has a training; else it is only evaluated, which costs next to nothing.
  virtual bool trains(const Job& job) const = 0;
  /// What the job costs, in epochs.
  virtual double cost(const Job& job) const = 0;
  /// Everything that determines the result of a job, from the request of the run.
  virtual Json request_of(const Job& job, const Json& run) const = 0;
  /// Reads the result of a job that has been done and proves its files. @throws InvalidArgument  they have changed
  virtual StoredResult prove(const Job& job) const = 0;
  /// Whether a training that is done can go on to more epochs. If not, its state is deleted when its result is stored:
  /// it is three times as large as the weights.
  virtual bool may_go_on() const { return true; }
  /// Whether a result is that of the end of the training; else the training goes on from its state. Asked only if
  /// may_go_on().
  virtual bool is_finished(const Job&, const Result&) const { return true; }
  /// Trains a job to its end, or continues it, and evaluates it. All processes of `work.replicas` call it.
  /// @returns  for rank 0; for the other processes whatever it has
  virtual StoredResult run(const Work& work) = 0;
  /// Stores the results of all finished jobs in the folder in one file. Only rank 0, when all jobs are done.
  virtual void combine() = 0;
};

/// The result of a job.
struct Outcome {
  Job job;
  Result result;
  double seconds = 0;  ///< of this call's training and evaluation; 0 if it was done before, or by another process
};

/// Jobs in a folder: each is done once, by whatever call, and continued where a call was stopped. The folder holds the
/// request of the run. Arms, variants and seeds may be added to it.
class Experiment {
 public:
  /// @param subject, replicas  must exist as long as this object
  /// @throws InvalidArgument  more trainings side by side than threads; a request in the folder that cannot be read
  Experiment(Plan plan, Subject& subject, training::Replicas& replicas);

  /// A training's last bits depend on its threads, so a run that exists keeps their number.
  const Sharing& sharing() const { return sharing_; }
  /// Whether the processes work on every training together.
  bool is_together() const { return replicas_.size() > 1 && plan_.spread == Spread::batches; }

  /// Does all jobs.
  /// @param request  of the run: everything that determines its numbers, except arms, variants and seeds
  /// @returns  all jobs, for rank 0; none for the other processes
  /// @throws InvalidArgument  the folder holds another request (the difference is named) or foreign files; another
  ///     process was asked for something else; a file of a finished job is missing or has changed
  /// @throws RunFailed        as Subject::run()
  std::vector<Outcome> run(Json request);

 private:
  std::vector<Job> own_jobs() const;
  Sharing shared_threads() const;
  Json common_request(Json request) const;
  void tell_of_earlier_results() const;
  Outcome do_job(const Job& job, const Json& run, SharedProgress& progress, training::Replicas& replicas) const;
  std::vector<Outcome> side_by_side(const Json& run, SharedProgress& progress) const;

  Plan plan_;
  Subject& subject_;
  training::Replicas& replicas_;
  std::vector<Job> jobs_, own_;
  Sharing sharing_;
};

/// The file in the folder of a run that holds its request.
inline constexpr const char* request_name = "request.json";

}  // namespace gainlens::experiment
