#include "analyses/checks/training_checks.h"

#include "core/counted.h"
#include "core/divergence.h"
#include "core/error.h"
#include "core/number_ranges.h"
#include "runfile/noise_level.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace gainlens::analyses {
namespace {

using runfile::TrainedSeed;

/// The values of a curve of the filter at the tested epoch, [layer]; empty: no filter.
std::vector<double> tested(const TrainedSeed& seed, const std::string& name) {
  const auto curve = seed.filter.find(name);
  const auto epochs = seed.curve.empty() ? std::size_t{0} : seed.curve.begin()->second.size();
  if (curve == seed.filter.end() || epochs == 0 || seed.best_epoch < 1) return {};
  const std::size_t layers = curve->second.size() / epochs;
  const auto begin = curve->second.begin() + static_cast<std::ptrdiff_t>(layers) * (seed.best_epoch - 1);
  return {begin, begin + static_cast<std::ptrdiff_t>(layers)};
}

bool any_finite(const std::vector<double>& values) {
  return std::ranges::any_of(values, [](double value) { return std::isfinite(value); });
}

/// Trainings that have a fault, by arm: "bft seeds 0-2; plain seed 1".
class Faulty {
 public:
  using Fault = std::function<bool(const runfile::TrainedSeed*)>;  ///< null: not finished
  Faulty(const CheckedTrainings& checked, const Fault& has_fault);
  bool none() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  std::string words() const;

 private:
  std::size_t count_ = 0;
  std::vector<std::string> parts_;
};

/// Trainings of which a fault can be told in words.
struct FaultInWords {
  std::string words;  ///< those that have it; empty: none
  std::string first;  ///< of the first of them
};
Faulty::Faulty(const CheckedTrainings& checked, const Fault& has_fault) {
  const runfile::TrainedRun& run = checked.trainings;
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    std::vector<std::uint64_t> seeds;
    for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
      const auto& result = run.result(arm, seed);
      if (has_fault(result ? &*result : nullptr)) seeds.push_back(run.seeds[seed]);
    }
    if (seeds.empty()) continue;
    count_ += seeds.size();
    parts_.push_back(
        fmt::format("{} seed{} {}", printable(run.arms[arm], 60), seeds.size() == 1 ? "" : "s", number_ranges(seeds)));
  }
}

std::string Faulty::words() const {
  return fmt::format("{}", fmt::join(parts_, "; "));
}

/// @param fault_of  empty: none. Called for finished trainings
FaultInWords faulty(const CheckedTrainings& checked, const std::function<std::string(const TrainedSeed&)>& fault_of) {
  std::string first;
  const Faulty found(checked, [&](const TrainedSeed* seed) {
    const std::string fault = seed == nullptr ? std::string() : fault_of(*seed);
    if (first.empty()) first = fault;
    return !fault.empty();
  });
  return {found.words(), first};
}

// Checks of all trainings

CheckOutcome files(const CheckedTrainings& checked) {
  if (!checked.changed.empty()) return {checked.changed, "take no number from these files until they are mended"};
  if (!checked.unproven.empty())
    return not_known(fmt::format("whether {} have changed", checked.not_compared), checked.unproven);
  return satisfactory("the files of every training are as it wrote them");
}

CheckOutcome finished(const CheckedTrainings& checked) {
  const Faulty open(checked, [](const TrainedSeed* seed) { return seed == nullptr; });
  const std::size_t all = checked.trainings.results.size();
  if (open.none()) return satisfactory(all_are(static_cast<std::int64_t>(all), "training") + " finished");
  return {fmt::format("{} of {} not finished: {}", open.count(), counted_are(all, "training"), open.words()),
          fmt::format("repeat the {} command, which continues", checked.command)};
}

CheckOutcome diverged(const CheckedTrainings& checked) {
  const FaultInWords found = faulty(checked, checked.divergence_of);
  if (found.words.empty()) return satisfactory("no training has diverged");
  return {fmt::format("diverged: {}; of the first, {}", found.words, found.first),
          "train with a smaller --learning-rate in another folder"};
}

CheckOutcome seeds(const CheckedTrainings& checked) {
  if (checked.alone) return not_known("how many seeds there are; this is one training alone, so give the run");
  std::vector<std::string> few;
  const runfile::TrainedRun& run = checked.trainings;
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    std::size_t done = 0;
    bool baseline = false;
    for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
      const auto& result = run.result(arm, seed);
      done += result ? 1 : 0;
      baseline = baseline || (result && result->best_epoch == 0);
    }
    if (!baseline && done < min_seeds) few.push_back(fmt::format("{} has {}", printable(run.arms[arm], 60), done));
  }
  if (few.empty()) return satisfactory(fmt::format("at least {} of each trained arm", counted(min_seeds, "seed")));
  return {fmt::format("too few finished seeds for a p: {}; it takes {}", fmt::join(few, ", "), min_seeds),
          "train more --seeds into the same folder"};
}

CheckOutcome filter(const CheckedTrainings& checked) {
  const auto has_filter = [](const TrainedSeed* seed) { return seed != nullptr && !seed->filter.empty(); };
  if (Faulty(checked, has_filter).none()) {
    if (Faulty(checked, [](const TrainedSeed* seed) { return seed == nullptr; }).none())
      return satisfactory("no arm has a filter");
    return not_known("whether a filter was in force; no finished training has one");
  }
  const Faulty never(checked, [&](const TrainedSeed* seed) {
    return has_filter(seed) && !any_finite(tested(*seed, "precision")) && !any_finite(tested(*seed, "gain"));
  });
  if (never.none()) return satisfactory("the filter was in force in the tested epochs");
  return {fmt::format("the filter was not in force in the tested epoch (it warms up): {}", never.words()),
          checked.filter_advice};
}

CheckOutcome bounds(const CheckedTrainings& checked) {
  const std::pair<const char*, const char*> curves[] = {{"share_at_most", "lambda_obs"},
                                                        {"share_of_precision_at_most", "lambda"}};
  std::vector<std::string> found;
  for (const auto& [name, symbol] : curves) {
    std::set<std::int64_t> layers;  // of any training
    const Faulty full(checked, [&layers, &curve = name](const TrainedSeed* seed) {
      if (seed == nullptr) return false;
      bool is_full = false;
      const std::vector<double> shares = tested(*seed, curve);
      for (std::size_t layer = 0; layer < shares.size(); ++layer) {
        if (!(shares[layer] >= nearly_all)) continue;  // also while the filter warms up: then it is NaN
        layers.insert(static_cast<std::int64_t>(layer));
        is_full = true;
      }
      return is_full;
    });
    if (!full.none())
      found.push_back(fmt::format("{} of {} {} in {}", symbol, layers.size() == 1 ? "layer" : "layers",
                                  number_ranges(std::vector<std::int64_t>(layers.begin(), layers.end())),
                                  full.words()));
  }
  if (found.empty()) return satisfactory("no layer has nearly all of its precisions at the bound");
  return {fmt::format("at least {:.0f}% of a layer's precisions are at their upper bound: {}; where precisions "
                      "are at their bound, K says nothing of the evidence",
                      100 * nearly_all, fmt::join(found, ", ")),
          checked.bounds_advice};
}

// Those of recommenders

bool is_trained(const TrainedSeed* seed) {
  return seed != nullptr && seed->best_epoch > 0;
}

CheckOutcome last_epoch(const CheckedRecommenders& checked) {
  const Faulty last(checked, [](const TrainedSeed* seed) {
    if (!is_trained(seed) || seed->curve.empty()) return false;
    return seed->best_epoch == std::ssize(seed->curve.begin()->second);
  });
  if (last.none()) return satisfactory("no training was still getting better when it ended");
  return {fmt::format("the last epoch is the best one, so more would have helped: {} of {} ({})", last.count(),
                      counted(Faulty(checked, is_trained).count(), "training"), last.words()),
          "repeat the command with more --epochs, which continues"};
}

// Those of other experiments

/// "gainlens train finetune": the request names it.
std::string command_of(const runfile::ExperimentRun& run) {
  const auto kind = run.request.find("kind");
  const bool named = kind != run.request.end() && kind->is_string();
  return "gainlens " + (named ? printable(kind->get<std::string>(), 60) : std::string("train"));
}

/// Between which numbers the scores of an answer lie (data/answer_scores.h). Others have no bounds that are known here.
struct Bounds {
  std::string_view score;
  bool is_whole;  ///< 0 or 1, and nothing between
};
constexpr Bounds bounds_of_answers[] = {{"exact_match", true}, {"f1", false}};

std::string fault_of_score(const CheckedExperiment& checked, const UnitScore& score, double value) {
  if (!std::isfinite(value)) return fmt::format("{} holds {}, which is no number", score.name, value);
  const auto* const known = std::ranges::find(bounds_of_answers, score.name, &Bounds::score);
  if (known == std::end(bounds_of_answers) || checked.run.unit() != "question") return {};
  if (value < 0 || value > 1) return fmt::format("{} holds {}; it lies between 0 and 1", score.name, value);
  if (known->is_whole && value != 0 && value != 1) return fmt::format("{} holds {}; it is 0 or 1", score.name, value);
  return {};
}

std::string fault_of_scores(const CheckedExperiment& checked, const TrainedSeed& seed) {
  const std::size_t units = checked.run.units.size();
  for (const UnitScore& score : checked.run.unit_scores) {
    const auto found = seed.scores.find(score.name);
    const std::size_t there = found == seed.scores.end() ? 0 : found->second.size();
    if (there != units)
      return fmt::format("{} has {} scores of {}", score.name, there, counted(units, checked.run.unit()));
    for (std::size_t unit = 0; unit < units; ++unit) {
      const std::string fault = fault_of_score(checked, score, found->second[unit]);
      if (!fault.empty()) return fmt::format("{} ({})", fault, printable(checked.run.units[unit], 60));
    }
  }
  return {};
}

std::string fault_of_mean(const TrainedSeed& seed, const std::string& metric, std::span<const double> scores) {
  const auto stored = seed.test.find(metric);
  if (stored == seed.test.end()) return fmt::format("there is no {}", metric);
  const double mean = scores.empty() ? std::nan("") : mean_score(scores);
  if (stored->second == mean) return {};
  return fmt::format("{} is {}, and its scores give {}", metric, stored->second, mean);
}

std::string fault_of_means(const CheckedExperiment& checked, const TrainedSeed& seed) {
  const std::size_t selection = checked.run.selection_units();
  for (const UnitScore& score : checked.run.unit_scores) {
    const auto found = seed.scores.find(score.name);
    const std::span<const double> all = found == seed.scores.end() ? std::span<const double>() : found->second;
    std::string fault = fault_of_mean(seed, score.name, all);
    const std::string rest = score.name + "_not_selected";
    if (fault.empty() && selection < all.size() && seed.test.contains(rest))
      fault = fault_of_mean(seed, rest, all.subspan(selection));
    if (!fault.empty()) return fault;
  }
  return {};
}

/// Why it has diverged; without a comparison with guessing, because the number of choices is not stored.
std::string divergence_of(const TrainedSeed& seed) {
  for (const auto& [name, values] : seed.curve) {
    const auto bad = std::ranges::find_if(values, [](double value) { return !std::isfinite(value); });
    if (bad != values.end()) return fmt::format("its {} is {} after epoch {}", name, *bad, bad - values.begin() + 1);
  }
  const auto losses = seed.curve.find(runfile::training_loss);
  return losses == seed.curve.end() ? std::string() : divergence(losses->second, 0);
}

CheckOutcome levels(const CheckedExperiment& checked) {
  if (checked.alone) return not_known("which levels there are; this is one training alone, so give the run");
  std::set<std::string> arms, variants;
  for (const std::string& label : checked.run.arms) {
    if (!runfile::noise_of_variant(runfile::variant_of(label))) continue;
    arms.insert(runfile::arm_of(label));
    variants.insert(runfile::variant_of(label));
  }
  if (arms.empty()) return satisfactory("the run has no levels of noise");
  std::vector<std::string> missing;
  for (const std::string& arm : arms) {
    for (const std::string& variant : variants) {
      const std::string label = fmt::format("{}/{}", arm, variant);
      if (std::ranges::find(checked.run.arms, label) == checked.run.arms.end()) missing.push_back(printable(label, 60));
    }
  }
  if (missing.empty()) return satisfactory(fmt::format("every arm has {}", counted(variants.size(), "level")));
  return {fmt::format("not every arm has every level of noise; missing: {}", fmt::join(missing, ", ")),
          fmt::format("repeat the {} command with all arms and levels; until then the report leaves out comparisons "
                      "over all levels of these arms",
                      checked.command)};
}

CheckOutcome scores(const CheckedExperiment& checked) {
  const auto found = faulty(checked, [&](const TrainedSeed& seed) { return fault_of_scores(checked, seed); });
  if (found.words.empty())
    return satisfactory(fmt::format("every finished training has {} of {}",
                                    counted(checked.run.unit_scores.size(), "score"),
                                    counted(checked.run.units.size(), checked.run.unit())));
  return {fmt::format("scores that cannot be: {}; of the first, {}", found.words, found.first),
          fmt::format("take no number from these trainings; delete their folders and repeat the {} command",
                      checked.command)};
}

CheckOutcome means(const CheckedExperiment& checked) {
  const auto found = faulty(checked, [&](const TrainedSeed& seed) { return fault_of_means(checked, seed); });
  if (found.words.empty()) return satisfactory("every metric is the mean of its scores");
  return {fmt::format("a metric is not the mean of its scores: {}; of the first, {}", found.words, found.first),
          fmt::format("take the scores, from which compare computes, or delete the folders of these trainings and "
                      "repeat the {} command",
                      checked.command)};
}

/// A check of all trainings, among those of one kind.
template <CheckOutcome (*look)(const CheckedTrainings&), typename Checked>
CheckOutcome any(const Checked& checked) {
  return look(checked);
}

/// A check of what finished trainings hold.
template <auto look, typename Checked>
CheckOutcome ended(const Checked& checked) {
  const auto& results = checked.trainings.results;
  if (std::ranges::none_of(results, [](const auto& result) { return result.has_value(); }))
    return not_known("this; no training is finished");
  return look(checked);
}

}  // namespace

CheckedRecommenders::CheckedRecommenders(const runfile::RecommendRun& made)
    : CheckedTrainings{made, "gainlens train recommend"}, run(made) {
  divergence_of = [&made](const TrainedSeed& seed) {
    return runfile::divergence_of(seed, std::ssize(made.item_train_count));
  };
  filter_advice = "train longer, or with a smaller --warm-up";
  bounds_advice = "train with a larger --most-precision, or read no evidence from these gains";
}

CheckedExperiment::CheckedExperiment(const runfile::ExperimentRun& made)
    : CheckedTrainings{made, command_of(made)}, run(made) {
  divergence_of = analyses::divergence_of;
  filter_advice = "train longer, or with a shorter warm-up";
  bounds_advice = "read no evidence from these gains";
}

std::span<const Check<CheckedRecommenders>> recommender_checks() {
  static constexpr Check<CheckedRecommenders> checks[] = {
      {"files", "Are the files those that the trainings wrote?", any<files>},
      {"finished", "Is every training finished?", any<finished>},
      {"diverged", "Has no training diverged?", ended<diverged>},
      {"seeds", "Are there enough seeds for a p?", any<seeds>},
      {"last_epoch", "Had every training stopped getting better?", ended<last_epoch>},
      {"filter", "Was the filter in force?", ended<filter>},
      {"bounds", "Are lambda and lambda_obs within their bounds?", ended<bounds>},
  };
  return checks;
}

std::span<const Check<CheckedExperiment>> experiment_checks() {
  static constexpr Check<CheckedExperiment> checks[] = {
      {"files", "Are the files those that the trainings wrote?", any<files>},
      {"finished", "Is every training finished?", any<finished>},
      {"levels", "Has every arm every level of noise?", levels},
      {"scores", "Has every training a possible score of every unit?", ended<scores>},
      {"means", "Is every metric the mean of its scores?", ended<means>},
      {"diverged", "Has no training diverged?", ended<diverged>},
      {"seeds", "Are there enough seeds for a p?", any<seeds>},
      {"filter", "Was the filter in force?", ended<filter>},
      {"bounds", "Are lambda and lambda_obs within their bounds?", ended<bounds>},
  };
  return checks;
}

}  // namespace gainlens::analyses
