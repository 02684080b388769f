#include "recommend/train_recommend.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/listener.h"
#include "core/nearest.h"
#include "core/thread_count.h"
#include "recommend/finished_seeds.h"
#include "recommend/recommend_task.h"
#include "recommend/seed_result.h"
#include "recommend/train_seed.h"
#include "recommend/training_memory.h"
#include "runfile/recommend_run.h"
#include "runfile/run_file_name.h"
#include "runfile/run_folder.h"
#include "runfile/run_proof.h"
#include "runfile/work_shares.h"
#include "training/training_folder.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

namespace gainlens::recommend {
namespace {

/// Version of the training procedure, part of a request. To be raised when the same request would give other weights.
constexpr int training_version = 2;

constexpr const char* request_name = "request.json";

/// Of one call: run.h5 holds all of them, and each has a folder.
constexpr std::int64_t most_seeds = 10'000;

std::vector<SeedJob> jobs_of(const RecommendRequest& request) {
  std::vector<SeedJob> jobs;
  for (const std::string& arm : request.arms) {
    for (std::int64_t i = 0; i < request.seeds; ++i) {
      const std::uint64_t seed = request.seed + static_cast<std::uint64_t>(i);
      jobs.push_back({arm, seed, request.out / arm / fmt::format("seed-{}", seed)});
    }
  }
  return jobs;
}

bool trains_together(const RecommendRequest& request, const training::Replicas& replicas) {
  return replicas.size() > 1 && request.spread == Spread::batches;
}

/// The jobs that this process works on, alone or together with the others.
std::vector<SeedJob> own_jobs(const std::vector<SeedJob>& jobs, const RecommendRequest& request,
                              const training::Replicas& replicas) {
  if (replicas.size() == 1 || trains_together(request, replicas)) return jobs;
  std::vector<double> costs;
  costs.reserve(jobs.size());
  for (const SeedJob& job : jobs) costs.push_back(find_arm(job.arm) != nullptr ? 1 : 0.01);  // baselines only rank
  const auto shares = runfile::balanced_shares(costs, replicas.size());
  std::vector<SeedJob> own;
  for (const std::size_t i : shares.at(static_cast<std::size_t>(replicas.rank()))) own.push_back(jobs[i]);
  return own;
}

/// How the trainings share the threads. The last bits of a training depend on its threads, so a run that exists keeps
/// its number, whatever this call could give.
struct Sharing {
  std::int64_t seeds_at_once, threads_of_seed;
};

Sharing share_threads(const RecommendRequest& request, std::int64_t jobs) {
  const std::int64_t threads = std::max<std::int64_t>(request.threads, 1);
  const std::filesystem::path file = request.out / request_name;
  if (std::filesystem::exists(file)) {
    const Json stored = read_json_file(file);
    if (stored.is_object() && stored.contains("threads") && stored["threads"].is_number_unsigned()) {
      const auto of_seed = std::clamp<std::int64_t>(stored["threads"].get<std::int64_t>(), 1, most_threads());
      const std::int64_t most = std::clamp<std::int64_t>(threads / of_seed, 1, jobs);
      return {request.seeds_at_once > 0 ? std::min(request.seeds_at_once, jobs) : most, of_seed};
    }
  }
  CHECK(request.seeds_at_once <= threads,
        "--seeds-at-once: {} trainings side by side need a thread each; there are {} "
        "(--threads)",
        request.seeds_at_once, threads);
  const std::int64_t most = std::min(threads, jobs);
  const std::int64_t at_once = request.seeds_at_once > 0 ? std::min(request.seeds_at_once, most) : most;
  return {at_once, std::max<std::int64_t>(1, threads / at_once)};
}

/// What rank 0 finds, for all processes.
Sharing share_threads(const RecommendRequest& request, std::int64_t jobs, training::Replicas& replicas) {
  Sharing found{1, 1};
  if (replicas.leads()) found = share_threads(request, trains_together(request, replicas) ? 1 : jobs);
  const Json common = Json::parse(replicas.text_of_first(Json{found.seeds_at_once, found.threads_of_seed}.dump()));
  return {common.at(0).get<std::int64_t>(), common.at(1).get<std::int64_t>()};
}

/// The backbone of a request.
const BackboneKind& backbone_of(const Json& request, const std::string& where) {
  CHECK(request.contains("backbone") && request["backbone"].is_string(), "{}: has no text 'backbone'", where);
  return backbone_named(request["backbone"].get<std::string>(), where + ": 'backbone'");
}

/// Which requests are the same. Another backbone has other settings: the difference is then the backbone, not a key.
training::RequestRules rules_of(const Json& stored, const Json& asked) {
  training::RequestRules rules = request_rules(backbone_of(asked, "request"));
  if (!stored.is_object() || stored.value("backbone", Json()) != asked["backbone"]) rules.complete = {""};
  return rules;
}

/// The request in the form of the run in the folder, if there is one: with its keys, and with the name of the data that
/// it began with. A data file that was renamed or moved is the same request, because the split has a checksum.
Json in_form_of_run(Json document, const std::filesystem::path& out) {
  const std::filesystem::path file = out / request_name;
  if (!std::filesystem::exists(file)) return document;
  const Json stored = read_json_file(file);
  const Json::json_pointer name("/data/name");
  if (stored.contains(name) && stored.at(name).is_string()) document.at(name) = stored.at(name);
  const BackboneKind& backbone = backbone_of(document, "request");
  return training::in_form_of(stored, std::move(document), request_rules(backbone));
}

/// Refuses another request in the folder. Arms and number of seeds may differ, and epochs may be more.
void check_request(const std::filesystem::path& out, const Json& document) {
  const std::filesystem::path file = out / request_name;
  if (std::filesystem::exists(file)) {
    const Json stored = read_json_file(file);
    training::check_same_request(stored, document, out, rules_of(stored, document));
    if (stored == document) return;
  }
  write_file_atomically(file, document.dump(2) + "\n");
}

/// Returns when every process has come here.
void wait_for_all(training::Replicas& replicas) {
  if (replicas.size() > 1) replicas.sum({at::zeros({1})});
}

/// The request of all processes: that of rank 0, in the form of the run that it continues.
/// @throws InvalidArgument  this process was asked for another run than rank 0
Json common_request(Json document, const std::filesystem::path& out, training::Replicas& replicas) {
  if (replicas.leads()) document = in_form_of_run(std::move(document), out);
  Json of_first = Json::parse(replicas.text_of_first(document.dump()));
  document["data"]["name"] = of_first["data"]["name"];
  training::RequestRules rules = rules_of(of_first, document);
  rules.may_grow = {};
  if (!replicas.leads()) training::check_same_request(of_first, document, out, rules);
  wait_for_all(replicas);
  return of_first;
}

/// Each job by one thread; several threads side by side.
std::vector<SeedOutcome> run_side_by_side(const std::vector<SeedJob>& own, const SeedJobs& shared,
                                          std::int64_t at_once) {
  std::vector<SeedOutcome> outcomes(own.size());
  std::atomic<std::size_t> next = 0;
  std::mutex failing;
  std::exception_ptr failure;
  std::vector<std::thread> workers;
  for (std::int64_t worker = 0; worker < at_once; ++worker) {
    workers.emplace_back([&] {
      training::SingleReplica alone;
      try {
        for (std::size_t i = next++; i < own.size(); i = next++) outcomes[i] = run_job(own[i], shared, alone);
      } catch (...) {
        const std::lock_guard guard(failing);
        if (failure == nullptr) failure = std::current_exception();
        next = own.size();  // the other trainings go on to their end; no new one begins
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  if (failure != nullptr) std::rethrow_exception(failure);
  return outcomes;
}

/// The outcomes of all jobs; those of other processes are read from their files.
std::vector<SeedOutcome> outcomes_of(const std::vector<SeedJob>& jobs, const std::vector<SeedOutcome>& done,
                                     std::int64_t items) {
  std::vector<SeedOutcome> all;
  for (const SeedJob& job : jobs) {
    const auto here = std::find_if(done.begin(), done.end(), [&](const SeedOutcome& outcome) {
      return outcome.arm == job.arm && outcome.seed == job.seed;
    });
    all.push_back(here != done.end() ? *here : stored_outcome(job, items));
  }
  return all;
}

}  // namespace

void check_arms(const std::vector<std::string>& arms) {
  CHECK(!arms.empty(), "--arm: at least one is needed");
  for (auto arm = arms.begin(); arm != arms.end(); ++arm) {
    CHECK(std::find(arm_names().begin(), arm_names().end(), *arm) != arm_names().end(),
          "--arm: '{}'; must be one of {}{}", printable(*arm, 60), fmt::join(arm_names(), ", "),
          did_you_mean(*arm, arm_names()));
    CHECK(std::find(arms.begin(), arm, *arm) == arm, "--arm: '{}' is given twice", *arm);
  }
}

void check_seeds(std::uint64_t seed, std::int64_t seeds) {
  CHECK(seeds >= 1, "--seeds: {}; at least 1 is needed", seeds);
  CHECK(seeds <= most_seeds, "--seeds: {}; at most {} are supported", seeds, most_seeds);
  CHECK(static_cast<std::uint64_t>(seeds) - 1 <= std::numeric_limits<std::uint64_t>::max() - seed,
        "--seeds: {} seeds from {} on (--seed) go beyond 2^64 - 1, the largest seed; give a smaller --seed", seeds,
        seed);
}

void combine_seeds(const std::filesystem::path& out, const data::LeaveOneOut& split, std::string_view program_version) {
  std::map<std::pair<std::string, std::uint64_t>, SeedResult> found, begun;
  std::set<std::uint64_t> seeds;
  runfile::RecommendRun run;
  run.request = read_json_file(out / request_name);
  const std::string where = printable((out / request_name).string());
  const Settings settings = stored_settings(run.request.at("training"), where, backbone_of(run.request, where));
  for (const std::string& arm : arm_names()) {
    if (!std::filesystem::is_directory(out / arm)) continue;
    run.arms.push_back(arm);
    for (const auto& entry : std::filesystem::directory_iterator(out / arm)) {
      const auto seed = seed_of_folder(entry.path().filename().string());
      if (!seed || !std::filesystem::exists(entry.path() / seed_result_name)) continue;
      SeedResult stored = prove_seed(entry.path(), arm, *seed);
      seeds.insert(*seed);
      (is_finished(stored, settings.epochs, settings.patience) ? found : begun)[{arm, *seed}] = std::move(stored);
    }
  }
  for (const auto& [job, result] : begun)
    tell_note("{} seed {}: has {} of {} epochs and is left out of run.h5; ask for it, to continue", job.first,
              job.second, result.curve.begin()->second.size(), settings.epochs);
  run.seeds.assign(seeds.begin(), seeds.end());
  run.users = split.interactions().users;
  for (std::int64_t user = 0; user < split.users(); ++user) {
    run.target.push_back(split.target(user, data::HeldOut::test));
    run.history_length.push_back(std::ssize(split.history(user, data::HeldOut::test).items));
    run.training_length.push_back(std::ssize(split.training(user)));
  }
  run.item_train_count.assign(split.training_counts().begin() + 1, split.training_counts().end());
  for (const std::string& arm : run.arms) {
    for (const std::uint64_t seed : run.seeds) {
      auto& result = run.results.emplace_back();
      const auto done = found.find({arm, seed});
      if (done == found.end()) continue;
      SeedResult& stored = done->second;
      CHECK(std::ssize(stored.rank) == split.users(), "{}: arm {}, seed {} has ranks of {} users; the data set has {}",
            printable(out.string()), arm, seed, stored.rank.size(), split.users());
      result = {std::move(stored.curve), std::move(stored.filter), stored.best_epoch, std::move(stored.test),
                std::move(stored.rank)};
    }
  }
  const std::filesystem::path combined = out / runfile::run_file_name;
  TemporaryFile file(combined);
  runfile::write_recommend_run(file.path(), run, program_version);
  flush_to_disk(file.path());
  std::filesystem::remove(runfile::checksum_file_of(combined));  // a file without one is read, one that differs is not
  file.publish();
  runfile::write_checksum_beside(combined);
}

Json request_of(const RecommendRequest& request, const data::LeaveOneOut& split, std::int64_t threads_of_seed,
                std::int64_t processes) {
  const data::Interactions& interactions = split.interactions();
  Json document = {{"kind", "train recommend"},
                   {"version", training_version},
                   {"backbone", request.settings.backbone->name},
                   {"data",
                    {{"name", Json::parse(json_text(request.data_name))},
                     {"format", format_name(interactions.format)},
                     {"users", split.users()},
                     {"items", split.items()},
                     {"interactions", interactions.interaction_count()},
                     {"split", split.checksum()}}},
                   {"training", Json(to_json(request.settings))},
                   {"threads", threads_of_seed}};
  if (processes > 1 && request.spread == Spread::batches) document["processes"] = processes;
  return document;
}

RecommendOutcome train_recommend(const RecommendRequest& request, const data::LeaveOneOut& split,
                                 training::Replicas& replicas) {
  check_arms(request.arms);
  check_seeds(request.seed, request.seeds);
  const std::vector<SeedJob> jobs = jobs_of(request);
  const std::vector<SeedJob> own = own_jobs(jobs, request, replicas);
  const Sharing sharing = share_threads(request, std::max<std::int64_t>(std::ssize(own), 1), replicas);
  for (const std::string& name : request.arms) {  // what cannot be trained is refused before anything is written
    const ArmParts* arm = find_arm(name);
    if (arm == nullptr) continue;
    check_training(request.settings, arm->arm, split, "--arm " + name);
    const std::int64_t batches =
        (std::ssize(users_with_positions(split)) + request.settings.batch - 1) / request.settings.batch;
    const std::int64_t steps = checked_mul(batches, request.settings.epochs, "epochs");
    if (arm->factor == AttentionFactor::kalman_gain && request.settings.filter.warm_up >= steps && replicas.leads())
      tell_warning(
          "--arm {}: the filter does not act in this training: its warm-up takes {} steps "
          "(--warm-up), and the training has {}",
          name, request.settings.filter.warm_up, steps);
    check_memory(request.settings, split, sharing.seeds_at_once, arm->arm);
  }
  const Json document =
      common_request(request_of(request, split, sharing.threads_of_seed, replicas.size()), request.out, replicas);
  std::optional<runfile::FolderLock> lock;
  if (replicas.leads()) {
    runfile::prepare_run_folder(request.out);
    lock.emplace(request.out);
    check_request(request.out, document);
  }
  wait_for_all(replicas);  // a seed's folder before request.json would make the run folder look like something else

  double cost = 0;
  for (const SeedJob& job : own) cost += cost_of(job, request.settings);
  SharedProgress progress(cost, request.quiet || !replicas.leads());
  const SeedJobs shared{request, split, document, progress};
  at::set_num_threads(static_cast<int>(sharing.threads_of_seed));  // of each thread that trains
  RecommendOutcome outcome{{}, sharing.seeds_at_once, sharing.threads_of_seed};
  if (trains_together(request, replicas)) {
    for (const SeedJob& job : own) outcome.seeds.push_back(run_job(job, shared, replicas));
  } else {
    const std::vector<SeedOutcome> done = run_side_by_side(own, shared, sharing.seeds_at_once);
    wait_for_all(replicas);
    if (replicas.leads()) outcome.seeds = outcomes_of(jobs, done, split.items());
  }
  if (replicas.leads()) combine_seeds(request.out, split, request.program_version);
  return outcome;
}

RecommendOutcome train_recommend(const RecommendRequest& request, const data::LeaveOneOut& split) {
  training::SingleReplica alone;
  return train_recommend(request, split, alone);
}

}  // namespace gainlens::recommend
