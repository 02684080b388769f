#include "analyses/checks/shared_training_checks.h"
#include "core/counted.h"
#include "core/divergence.h"
#include "core/error.h"
#include "runfile/noise_level.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace gainlens::analyses {
namespace {

using runfile::TrainedSeed;

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

// Checks

CheckOutcome files(const CheckedExperiment& checked) {
  return training_checks::files(checked);
}

CheckOutcome finished(const CheckedExperiment& checked) {
  return training_checks::finished(checked);
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
  const auto found =
      training_checks::faulty(checked, [&](const TrainedSeed& seed) { return fault_of_scores(checked, seed); });
  if (found.words.empty())
    return satisfactory(fmt::format("every finished training has {} of {}",
                                    counted(checked.run.unit_scores.size(), "score"),
                                    counted(checked.run.units.size(), checked.run.unit())));
  return {fmt::format("scores that cannot be: {}; of the first, {}", found.words, found.first),
          fmt::format("take no number from these trainings; delete their folders and repeat the {} command",
                      checked.command)};
}

CheckOutcome means(const CheckedExperiment& checked) {
  const auto found =
      training_checks::faulty(checked, [&](const TrainedSeed& seed) { return fault_of_means(checked, seed); });
  if (found.words.empty()) return satisfactory("every metric is the mean of its scores");
  return {fmt::format("a metric is not the mean of its scores: {}; of the first, {}", found.words, found.first),
          fmt::format("take the scores, from which compare computes, or delete the folders of these trainings and "
                      "repeat the {} command",
                      checked.command)};
}

CheckOutcome diverged(const CheckedExperiment& checked) {
  return training_checks::diverged(checked, divergence_of);
}

CheckOutcome seeds(const CheckedExperiment& checked) {
  return training_checks::seeds(checked);
}

CheckOutcome filter(const CheckedExperiment& checked) {
  return training_checks::filter(checked, "train longer, or with a shorter warm-up");
}

CheckOutcome bounds(const CheckedExperiment& checked) {
  return training_checks::bounds(checked, "read no evidence from these gains");
}

}  // namespace

CheckedExperiment::CheckedExperiment(const runfile::ExperimentRun& made)
    : CheckedTrainings{made, command_of(made)}, run(made) {}

std::span<const Check<CheckedExperiment>> experiment_checks() {
  static constexpr Check<CheckedExperiment> checks[] = {
      {"files", "Are the files those that the trainings wrote?", files},
      {"finished", "Is every training finished?", finished},
      {"levels", "Has every arm every level of noise?", levels},
      {"scores", "Has every training a possible score of every unit?", scores},
      {"means", "Is every metric the mean of its scores?", means},
      {"diverged", "Has no training diverged?", diverged},
      {"seeds", "Are there enough seeds for a p?", seeds},
      {"filter", "Was the filter in force?", filter},
      {"bounds", "Are lambda and lambda_obs within their bounds?", bounds},
  };
  return checks;
}

}  // namespace gainlens::analyses
