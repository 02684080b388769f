#include "analyses/arm_pairs.h"

#include "core/check.h"
#include "core/nearest.h"
#include "core/number_ranges.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

namespace gainlens::analyses {
namespace {

template <typename Run>
std::string seeds_in_words(const ArmOf<Run>& arm) {
  const std::vector<std::uint64_t> seeds = arm.seeds();
  return seeds.empty() ? "none" : number_ranges(seeds, " to ");
}

template <typename Run>
const ArmOf<Run>& baseline_of(const std::vector<const ArmOf<Run>*>& arms, const std::string& name) {
  if (name.empty()) return *arms.front();
  std::vector<std::string> names;
  for (const ArmOf<Run>* arm : arms) {
    if (arm->name() == name) return *arm;
    names.push_back(arm->name());
  }
  throw_invalid("--baseline: '{}' is no arm on {}, which has {}{}", printable(name, 60),
                printable(arms.front()->run->data_name(), 60), fmt::join(names, ", "), did_you_mean(name, names));
}

/// The arm as a run that has its one result with every finished seed of another.
template <typename Run>
ArmOf<Run> with_seeds_of(const ArmOf<Run>& arm, const ArmOf<Run>& other) {
  const auto run = std::make_shared<Run>(*arm.run);
  run->arms = {arm.name()};
  run->seeds = other.seeds();
  run->results.assign(run->seeds.size(), arm.run->result(arm.arm, 0));
  ArmOf<Run> repeated = arm;
  repeated.run = run;
  repeated.arm = 0;
  return repeated;
}

template <typename Run>
PairOf<Run> pair_of(const ArmOf<Run>& baseline, const ArmOf<Run>& candidate, const Pairing& pairing) {
  CHECK(have_same_units(*baseline.run, *candidate.run),
        "{} and {}: have the same checksum of the split, but other {}s; one of the files is damaged", baseline.where(),
        candidate.where(), baseline.run->unit());
  const std::vector<std::uint64_t> one = baseline.seeds(), other = candidate.seeds();
  CHECK(!one.empty() && !other.empty(),
        "{} and {}: have the finished seeds {} and {}; repeat the training command, "
        "which continues",
        baseline.where(), candidate.where(), seeds_in_words(baseline), seeds_in_words(candidate));
  if (pairing.deterministic && candidate.seedless) return {baseline, with_seeds_of(candidate, baseline), false};
  if (pairing.deterministic && baseline.seedless) return {with_seeds_of(baseline, candidate), candidate, false};
  if (one == other) return {baseline, candidate, false};
  for (const auto& [list, trained] : {std::pair(&baseline, &candidate), std::pair(&candidate, &baseline)})
    CHECK(!list->seedless || pairing.by_position,
          "{}: names no seed, and {} has the seeds {}; if nothing random made these ranks, give --deterministic, which "
          "pairs them with every seed; else add the column seed",
          list->where(), trained->where(), seeds_in_words(*trained));
  CHECK(pairing.by_position,
        "{} and {}: have the finished seeds {} and {}; arms are paired by seed. Train the missing ones, or pair seeds "
        "that differ in their order with --by-position",
        baseline.where(), candidate.where(), seeds_in_words(baseline), seeds_in_words(candidate));
  CHECK(one.size() == other.size(), "{} and {}: have {} and {} finished seeds; --by-position needs equally many",
        baseline.where(), candidate.where(), one.size(), other.size());
  return {baseline, candidate, true};
}

}  // namespace

std::vector<ArmCurve> curves_of(const RecommenderArm& arm) {
  std::vector<ArmCurve> curves;
  for (const std::size_t seed : arm.finished()) {
    const runfile::TrainedSeed& result = arm.result(seed);
    const auto found = result.curve.find(std::string(curve_metric)), loss = result.curve.find("training_loss");
    if (found == result.curve.end()) continue;
    curves.push_back({arm.run->seeds[seed], found->second, result.best_epoch,
                      loss == result.curve.end() ? std::vector<double>() : loss->second});
  }
  return curves;
}

std::vector<double> mean_curve(std::span<const ArmCurve> curves, std::vector<double> ArmCurve::*member) {
  if (curves.empty()) return {};
  std::vector<double> sums = curves.front().*member;
  for (const ArmCurve& curve : curves.subspan(1)) {
    sums.resize(std::min(sums.size(), (curve.*member).size()));
    for (std::size_t epoch = 0; epoch < sums.size(); ++epoch) sums[epoch] += (curve.*member)[epoch];
  }
  for (double& sum : sums) sum /= static_cast<double>(curves.size());
  return sums;
}

template <typename Run>
std::string ArmOf<Run>::where() const {
  return printable(path.string()) + ":" + name();
}

template <typename Run>
void name_arms(std::vector<ArmOf<Run>>& arms) {
  using Name = std::function<std::string(const ArmOf<Run>&)>;
  const auto folder = [](const ArmOf<Run>& arm) {
    const std::filesystem::path whole = std::filesystem::weakly_canonical(arm.path);
    const std::filesystem::path run = whole.extension() == ".h5" ? whole.parent_path() : whole;
    return printable(run.filename().string()) + ":" + arm.name();
  };
  const Name names[] = {[](const ArmOf<Run>& arm) { return arm.name(); }, folder,
                        [](const ArmOf<Run>& arm) { return arm.where(); }};
  for (ArmOf<Run>& arm : arms) {
    const auto others = [&](const Name& name) {
      return std::count_if(arms.begin(), arms.end(), [&](const ArmOf<Run>& other) {
        return other.run->split() == arm.run->split() && name(other) == name(arm);
      });
    };
    const auto* found =
        std::find_if(std::begin(names), std::end(names), [&](const Name& name) { return others(name) == 1; });
    CHECK(found != std::end(names), "compare: {} stands twice; name each arm once", arm.where());
    arm.label = (*found)(arm);
  }
}

template <typename Run>
std::vector<std::size_t> ArmOf<Run>::finished() const {
  std::vector<std::size_t> places;
  for (std::size_t seed = 0; seed < run->seeds.size(); ++seed) {
    if (run->result(arm, seed)) places.push_back(seed);
  }
  return places;
}

template <typename Run>
std::vector<std::uint64_t> ArmOf<Run>::seeds() const {
  std::vector<std::uint64_t> numbers;
  for (const std::size_t seed : finished()) numbers.push_back(run->seeds[seed]);
  return numbers;
}

template <typename Run>
std::vector<double> ArmOf<Run>::scores(const std::string& name) const {
  std::vector<double> all;
  for (const std::size_t seed : finished()) {
    const std::vector<double>& own = result(seed).scores.at(name);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

UserCounts user_counts(const runfile::RecommendRun& run) {
  return {run.target, run.history_length, run.training_length, run.item_train_count};
}

template <typename Run>
std::vector<PairOf<Run>> pair_arms(const std::vector<ArmOf<Run>>& arms, const Pairing& pairing) {
  std::vector<std::vector<const ArmOf<Run>*>> splits;
  for (const ArmOf<Run>& arm : arms) {
    const auto same = [&](const auto& others) { return others.front()->run->split() == arm.run->split(); };
    const auto found = std::find_if(splits.begin(), splits.end(), same);
    (found == splits.end() ? splits.emplace_back() : *found).push_back(&arm);
  }
  for (std::size_t i = 0; i < splits.size(); ++i) {
    if (splits[i].size() > 1) continue;
    const ArmOf<Run>& lone = *splits[i].front();
    CHECK(splits.size() > 1, "{}: one arm alone ({}); give a run with several arms, or several runs", lone.where(),
          lone.name());
    const ArmOf<Run>& other = *splits[i == 0 ? 1 : 0].front();
    throw_invalid("{} and {}: have different splits, {} and {}; only arms on the same split can be compared",
                  lone.where(), other.where(), printable(lone.run->split(), 64), printable(other.run->split(), 64));
  }
  std::vector<PairOf<Run>> pairs;
  for (const auto& split : splits) {
    const ArmOf<Run>& baseline = baseline_of<Run>(split, pairing.baseline);
    for (const ArmOf<Run>* arm : split) {
      if (arm != &baseline) pairs.push_back(pair_of(baseline, *arm, pairing));
    }
  }
  CHECK(!pairing.by_position || std::ranges::any_of(pairs, &PairOf<Run>::by_position),
        "--by-position: pairs seeds that differ, and these arms have the same seeds, {}, by which they are paired; "
        "leave it out",
        seeds_in_words(pairs.front().baseline));
  return pairs;
}

template struct ArmOf<runfile::RecommendRun>;
template struct ArmOf<runfile::ExperimentRun>;
template void name_arms(std::vector<RecommenderArm>& arms);
template void name_arms(std::vector<ExperimentArm>& arms);
template std::vector<ArmPair> pair_arms(const std::vector<RecommenderArm>& arms, const Pairing& pairing);
template std::vector<ExperimentPair> pair_arms(const std::vector<ExperimentArm>& arms, const Pairing& pairing);

Maybe<ArmPair> pair_shared_seeds(const RecommenderArm& baseline, const RecommenderArm& candidate) {
  ASSERT(baseline.run == candidate.run, "{} and {} are arms of two runs", baseline.where(), candidate.where());
  const auto shared = std::make_shared<runfile::RecommendRun>(*baseline.run);
  bool any = false;
  for (std::size_t seed = 0; seed < shared->seeds.size(); ++seed) {
    auto& one = shared->results.at(baseline.arm * shared->seeds.size() + seed);
    auto& other = shared->results.at(candidate.arm * shared->seeds.size() + seed);
    any = any || (one && other);
    if (one && other) continue;
    one.reset();
    other.reset();
  }
  if (!any)
    return Maybe<ArmPair>::none(fmt::format("{} and {} have no finished seed in common: {} and {}", baseline.name(),
                                            candidate.name(), seeds_in_words(baseline), seeds_in_words(candidate)));
  return ArmPair{{baseline.path, shared, baseline.arm, baseline.label},
                 {candidate.path, shared, candidate.arm, candidate.label}};
}

}  // namespace gainlens::analyses
