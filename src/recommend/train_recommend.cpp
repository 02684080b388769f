#include "recommend/train_recommend.h"

#include "bft/warm_up.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/listener.h"
#include "core/nearest.h"
#include "data/run_users.h"
#include "experiment/job.h"
#include "recommend/finished_seeds.h"
#include "recommend/idle_settings.h"
#include "recommend/recommend_task.h"
#include "recommend/train_seed.h"
#include "recommend/training_memory.h"
#include "runfile/recommend_run.h"
#include "runfile/training_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace gainlens::recommend {
namespace {

/// Of an arm without training, which ranks the test items once; in epochs, whose own ranking is a small part.
constexpr double cost_of_ranking = 0.1;

/// A run of recommenders: what its jobs are trained with.
class Recommenders : public experiment::Subject {
 public:
  Recommenders(const RecommendRequest& request, const data::LeaveOneOut& split)
      : request_(request), split_(split), variants_(settings_of_variants(request.variants, request.settings)) {
    check_variants_of_arms(request.arms, request.variants, variants_, request.settings);
  }

  const Settings& settings(const std::string& variant) const {
    return variant.empty() ? request_.settings : variants_.at(variant);
  }

  bool trains(const experiment::Job& job) const override { return find_arm(job.arm) != nullptr; }
  double cost(const experiment::Job& job) const override {
    return trains(job) ? static_cast<double>(settings(job.variant).epochs) : cost_of_ranking;
  }
  Json request_of(const experiment::Job& job, const Json& run) const override {
    Json own = run;
    if (!job.variant.empty()) own["training"].update(run.at("variants").at(job.variant));
    own.erase("variants");
    own["arm"] = job.arm;
    own["seed"] = job.seed;
    return own;
  }
  experiment::StoredResult prove(const experiment::Job& job) const override {
    return *prove_seed(job.folder, job.label(), job.seed);
  }
  bool is_finished(const experiment::Job& job, const experiment::Result& result) const override {
    return experiment::is_finished(result, settings(job.variant).epochs, settings(job.variant).patience);
  }
  experiment::StoredResult run(const experiment::Work& work) override {
    return train_seed(work, {settings(work.job.variant), split_, request_.options});
  }
  void combine() override { combine_seeds(request_.out, split_, request_.program_version); }

 private:
  const RecommendRequest& request_;
  const data::LeaveOneOut& split_;
  std::map<std::string, Settings> variants_;
};

/// Refuses variants that the run in the folder has with other settings, or under another name.
void check_stored_variants(const RecommendRequest& request) {
  const std::filesystem::path file = request.out / experiment::request_name;
  if (request.variants.empty() || !std::filesystem::exists(file)) return;
  std::vector<Variant> all = stored_variants(read_json_file(file), printable(file.string()));
  for (const Variant& variant : request.variants) {
    const auto known = std::ranges::find(all, variant.name, &Variant::name);
    if (known == all.end()) all.push_back(variant);
  }
  settings_of_variants(all, request.settings);
}

/// The names of what each arm is trained with; "": the settings of the run.
std::vector<std::string> names_of_variants(const RecommendRequest& request) {
  std::vector<std::string> names;
  if (request.variants.empty() || request.own_settings_too) names.emplace_back();
  for (const Variant& variant : request.variants) names.push_back(variant.name);
  return names;
}

/// Refuses what cannot be trained, before anything is written.
void check_trainings(const Recommenders& recommenders, const RecommendRequest& request, const data::LeaveOneOut& split,
                     std::int64_t side_by_side, bool leads) {
  const std::vector<std::string> variants = names_of_variants(request);
  std::optional<std::int64_t> users;  // with positions; baselines need none
  for (const std::string& name : request.arms) {
    const ArmParts* arm = find_arm(name);
    if (arm == nullptr) continue;
    for (const std::string& variant : variants) {
      const Settings& settings = recommenders.settings(variant);
      const std::string where = "--arm " + name + (variant.empty() ? "" : " --variant " + variant);
      check_training(settings, arm->arm, split, where);
      if (!users) users = std::ssize(users_with_positions(split));
      const std::int64_t batches = (*users + settings.batch - 1) / settings.batch;
      const std::int64_t steps = checked_mul(batches, settings.epochs, "epochs");
      if (arm->factor == AttentionFactor::kalman_gain && leads) {
        const std::string never = bft::why_never_in_force(settings.filter, steps, batches);
        if (!never.empty()) tell_warning("{}: the filter does not act in this training: {}", where, never);
      }
      check_memory(settings, split, side_by_side, arm->arm);
    }
  }
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

void combine_seeds(const std::filesystem::path& out, const data::LeaveOneOut& split, std::string_view program_version) {
  const std::filesystem::path file = out / experiment::request_name;
  const std::string where = printable(file.string());
  runfile::RecommendRun run;
  run.request = read_json_file(file);
  const Settings settings = settings_of_request(run.request, "", where);
  auto variants = settings_of_variants(stored_variants(run.request, where), settings);
  variants.emplace("", settings);
  std::vector<experiment::SoughtArm> arms;
  for (const std::string& arm : arm_names()) {
    for (const auto& [variant, values] : variants)
      arms.push_back({arm,
                      variant,
                      {[](const experiment::Job& job) { return prove_seed(job.folder, job.label(), job.seed)->result; },
                       values.epochs, values.patience}});
  }
  experiment::add_finished(run, out, arms);
  data::set_users(run, split);
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    if (!run.results[i]) continue;
    for (const auto& [name, scores] : run.results[i]->scores)
      CHECK(scores.size() == run.units.size(), "{}: arm {}, seed {} has ranks of {} users; the data set has {}",
            printable(out.string()), run.arms[i / run.seeds.size()], run.seeds[i % run.seeds.size()], scores.size(),
            run.units.size());
  }
  runfile::publish_run_file(
      out, [&](const std::filesystem::path& path) { runfile::write_recommend_run(path, run, program_version); });
}

Json request_of(const RecommendRequest& request, const data::LeaveOneOut& split, std::int64_t threads_of_seed,
                std::int64_t processes) {
  Json document = {{"kind", "train recommend"},
                   {"version", runfile::recommend_request_version},
                   {"backbone", request.settings.backbone->name},
                   {"data", data::data_of_request(split, request.data_name)},
                   {"training", Json(to_json(request.settings))},
                   {"threads", threads_of_seed}};
  const auto reads_times = [&](const Settings& settings) {
    return settings.backbone->view(plan_of(settings, Arm::plain, split.items())).times;
  };
  const auto variants = settings_of_variants(request.variants, request.settings);
  if (reads_times(request.settings) ||
      std::ranges::any_of(variants, [&](const auto& variant) { return reads_times(variant.second); }))
    document["data"]["times"] = split.checksum_of_times();
  if (processes > 1 && request.spread == Spread::batches) document["processes"] = processes;
  if (!request.variants.empty()) document["variants"] = to_json(variants, request.variants);
  return document;
}

RecommendOutcome train_recommend(const RecommendRequest& request, const data::LeaveOneOut& split,
                                 training::Replicas& replicas) {
  check_arms(request.arms);
  check_seeds(request.seed, request.seeds);
  Recommenders recommenders(request, split);
  if (replicas.leads()) check_stored_variants(request);
  experiment::Axes axes{
      .arms = request.arms, .variants = names_of_variants(request), .seed = request.seed, .seeds = request.seeds};
  experiment::Experiment trainings({.title = "train recommend",
                                    .axes = std::move(axes),
                                    .out = request.out,
                                    .rules = request_rules(*request.settings.backbone),
                                    .threads = request.threads,
                                    .seeds_at_once = request.seeds_at_once,
                                    .spread = request.spread,
                                    .quiet = request.quiet},
                                   recommenders, replicas);
  const auto [seeds_at_once, threads_of_seed] = trainings.sharing();
  check_trainings(recommenders, request, split, seeds_at_once, replicas.leads());
  return {trainings.run(request_of(request, split, threads_of_seed, replicas.size())), seeds_at_once, threads_of_seed};
}

RecommendOutcome train_recommend(const RecommendRequest& request, const data::LeaveOneOut& split) {
  training::SingleReplica alone;
  return train_recommend(request, split, alone);
}

}  // namespace gainlens::recommend
