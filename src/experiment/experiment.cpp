#include "experiment/experiment.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/listener.h"
#include "core/thread_count.h"
#include "experiment/job.h"
#include "experiment/result_file.h"
#include "runfile/folder_lock.h"
#include "runfile/process_group.h"
#include "runfile/run_folder.h"
#include "training/training_folder.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

namespace gainlens::experiment {
namespace {

/// Returns when every process has come here.
void wait_for_all(training::Replicas& replicas) {
  if (replicas.size() > 1) replicas.sum({at::zeros({1})});
}

std::string words_of(const Job& job) {
  return fmt::format("{} seed {}", job.label(), job.seed);
}

/// Refuses another request in the folder. What the rules allow may differ.
void check_request(const std::filesystem::path& out, const Json& request, const training::RequestRules& rules) {
  const std::filesystem::path file = out / request_name;
  if (std::filesystem::exists(file)) {
    const Json stored = read_json_file(file);
    training::check_same_request(stored, request, out, rules);
    if (stored == request) return;
  }
  write_file_atomically(file, request.dump(2) + "\n");
}

std::filesystem::path state_file(const Job& job) {
  return training::state_file_in(job.folder / "training");
}

/// The result of a job that has been done, with its files proven. One of fewer epochs than are asked for now is
/// removed: its training goes on and replaces its checkpoint.
/// @param identity  of the request of the job
std::optional<StoredResult> finished_result(const Job& job, const std::string& identity, const Subject& subject) {
  const std::filesystem::path file = job.folder / result_name;
  if (!std::filesystem::exists(file)) return std::nullopt;
  StoredResult stored = subject.prove(job);
  CHECK(stored.request.empty() || stored.request == identity,
        "{}: is the result of a training with another request, such as other settings or data; put the files of this "
        "training back, or delete {} to train this seed again",
        printable(file.string()), printable(job.folder.string()));
  const std::filesystem::path state = state_file(job);
  if (!subject.may_go_on()) {
    std::filesystem::remove(state);  // the program was stopped before it did
    return stored;
  }
  if (std::filesystem::exists(state)) training::load_training_state(state);  // more epochs would continue from it
  if (subject.is_finished(job, stored.result)) return stored;
  std::filesystem::remove(file);
  return std::nullopt;
}

}  // namespace

Experiment::Experiment(Plan plan, Subject& subject, training::Replicas& replicas)
    : plan_(std::move(plan)),
      subject_(subject),
      replicas_(replicas),
      jobs_(jobs_of(plan_.axes, plan_.out)),
      own_(own_jobs()) {
  if (replicas_.leads()) sharing_ = shared_threads();
  const Json common =
      Json::parse(replicas_.text_of_first(Json{sharing_.seeds_at_once, sharing_.threads_of_seed}.dump()));
  sharing_ = {common.at(0).get<std::int64_t>(), common.at(1).get<std::int64_t>()};
}

/// The jobs that this process works on, alone or together with the others.
std::vector<Job> Experiment::own_jobs() const {
  if (replicas_.size() == 1 || is_together()) return jobs_;
  std::vector<double> costs;
  costs.reserve(jobs_.size());
  for (const Job& job : jobs_) costs.push_back(subject_.trains(job) ? 1 : 0.01);
  const auto shares = runfile::balanced_shares(costs, replicas_.size());
  std::vector<Job> own;
  for (const std::size_t i : shares.at(static_cast<std::size_t>(replicas_.rank()))) own.push_back(jobs_[i]);
  return own;
}

Sharing Experiment::shared_threads() const {
  const std::int64_t jobs = is_together() ? 1 : std::max<std::int64_t>(std::ssize(own_), 1);
  const std::int64_t threads = std::max<std::int64_t>(plan_.threads, 1);
  const std::filesystem::path file = plan_.out / request_name;
  if (std::filesystem::exists(file)) {
    const Json stored = read_json_file(file);
    if (stored.is_object() && stored.contains("threads") && stored["threads"].is_number_unsigned()) {
      const auto seed_threads = std::clamp<std::int64_t>(stored["threads"].get<std::int64_t>(), 1, max_threads());
      const std::int64_t most = std::clamp<std::int64_t>(threads / seed_threads, 1, jobs);
      return {plan_.seeds_at_once > 0 ? std::min(plan_.seeds_at_once, jobs) : most, seed_threads};
    }
  }
  CHECK(plan_.seeds_at_once <= threads,
        "--seeds-at-once: {} trainings side by side need a thread each; there are {} (--threads)", plan_.seeds_at_once,
        threads);
  const std::int64_t most = std::min(threads, jobs);
  const std::int64_t at_once = plan_.seeds_at_once > 0 ? std::min(plan_.seeds_at_once, most) : most;
  return {at_once, std::max<std::int64_t>(1, threads / at_once)};
}

/// The request of all processes: that of rank 0, in the form of the run that it continues.
/// @throws InvalidArgument  this process was asked for another run than rank 0
Json Experiment::common_request(Json request) const {
  const std::filesystem::path file = plan_.out / request_name;
  if (replicas_.leads() && std::filesystem::exists(file))
    request = training::in_form_of(read_json_file(file), std::move(request), plan_.rules);
  Json first_request = Json::parse(replicas_.text_of_first(request.dump()));
  training::RequestRules rules = plan_.rules;
  rules.may_grow = {};
  if (!replicas_.leads()) training::check_same_request(first_request, request, plan_.out, rules);
  wait_for_all(replicas_);
  return first_request;
}

void Experiment::tell_of_earlier_results() const {
  if (plan_.quiet || !replicas_.leads()) return;
  const auto done =
      std::ranges::count_if(jobs_, [](const Job& job) { return std::filesystem::exists(job.folder / result_name); });
  if (done > 0)
    tell_note("{}: {} of {} {} done by an earlier call", printable(plan_.out.string()), done,
              counted(jobs_.size(), "training"), done == 1 ? "was" : "were");
}

/// Does a job, if it has not been done.
/// @returns  for rank 0; without a result for the other processes
Outcome Experiment::do_job(const Job& job, const Json& run, SharedProgress& progress,
                           training::Replicas& replicas) const {
  const auto start = std::chrono::steady_clock::now();
  const Json request = subject_.request_of(job, run);
  const std::string identity = training::request_identity(request, plan_.rules);
  std::optional<StoredResult> done = replicas.leads() ? finished_result(job, identity, subject_) : std::nullopt;
  if (replicas.text_of_first(done ? "done" : "") == "done") {
    progress.skip(subject_.cost(job), words_of(job) + " was done before");
    return {job, done ? std::move(done->result) : Result(), 0};
  }
  if (replicas.leads()) ensure_writable_folder(job.folder);
  StoredResult stored = subject_.run({job, request, progress, replicas});
  if (!subject_.trains(job)) progress.evaluated(subject_.cost(job), words_of(job) + " done");
  if (!replicas.leads()) return {job, {}, 0};
  stored.request = identity;
  save_result(job.folder / result_name, job.label(), job.seed, stored);
  if (!subject_.may_go_on()) std::filesystem::remove(state_file(job));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return {job, std::move(stored.result), taken.count()};
}

/// Each job by one thread; several threads side by side.
std::vector<Outcome> Experiment::side_by_side(const Json& run, SharedProgress& progress) const {
  std::vector<Outcome> outcomes(own_.size());
  std::atomic<std::size_t> next = 0;
  std::mutex failing;
  std::exception_ptr failure;
  std::vector<std::thread> workers;
  for (std::int64_t worker = 0; worker < sharing_.seeds_at_once; ++worker) {
    workers.emplace_back([&] {
      training::SingleReplica alone;
      try {
        for (std::size_t i = next++; i < own_.size(); i = next++) outcomes[i] = do_job(own_[i], run, progress, alone);
      } catch (...) {
        const std::lock_guard guard(failing);
        if (failure == nullptr) failure = std::current_exception();
        next = own_.size();  // the other trainings go on to their end; no new one begins
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  if (failure != nullptr) std::rethrow_exception(failure);
  return outcomes;
}

std::vector<Outcome> Experiment::run(Json request) {
  request = common_request(std::move(request));
  std::optional<runfile::FolderLock> lock;
  if (replicas_.leads()) {
    runfile::prepare_run_folder(plan_.out);
    lock.emplace(plan_.out);
    check_request(plan_.out, request, plan_.rules);
    note_asked(plan_.out, jobs_);
  }
  wait_for_all(replicas_);  // a job's folder before request.json would make the run folder look like something else

  tell_of_earlier_results();
  double cost = 0;
  for (const Job& job : own_) cost += subject_.cost(job);
  SharedProgress progress(plan_.title, cost, plan_.quiet || !replicas_.leads());
  at::set_num_threads(static_cast<int>(sharing_.threads_of_seed));  // of each thread that trains
  std::vector<Outcome> outcomes;
  if (is_together()) {
    for (const Job& job : own_) outcomes.push_back(do_job(job, request, progress, replicas_));
    if (!replicas_.leads()) return {};
  } else {
    std::vector<Outcome> done = side_by_side(request, progress);
    wait_for_all(replicas_);
    if (!replicas_.leads()) return {};
    // The results of other processes are read from their files.
    for (const Job& job : jobs_) {
      const auto here = std::ranges::find(done, job.folder, [](const Outcome& outcome) { return outcome.job.folder; });
      outcomes.push_back(here != done.end()
                             ? std::move(*here)
                             : Outcome{job, load_result(job.folder / result_name, job.label(), job.seed).result, 0});
    }
  }
  subject_.combine();
  return outcomes;
}

}  // namespace gainlens::experiment
