#include "analyses/experiment_comparison.h"

#include "core/check.h"
#include "core/counted.h"

#include <cmath>

namespace gainlens::analyses {
namespace {

std::vector<std::string> names_of_scores(const runfile::ExperimentRun& run, const ExperimentOptions& options) {
  if (!options.scores.empty()) return options.scores;
  std::vector<std::string> names;
  for (const UnitScore& score : run.unit_scores) names.push_back(score.name);
  return names;
}

UnitScoreGain gain_of_score(const ExperimentPair& pair, const std::string& name, const ExperimentOptions& options) {
  const runfile::ExperimentRun& run = *pair.baseline.run;
  const UnitScore& score = run.score(name, pair.baseline.where());
  const UnitScore& other = pair.candidate.run->score(name, pair.candidate.where());
  CHECK(score == other, "{} and {}: the score '{}' is better when {} in one ({}), and when {} in the other ({})",
        pair.baseline.where(), pair.candidate.where(), name, score.higher_is_better ? "higher" : "lower", score.measure,
        other.higher_is_better ? "higher" : "lower", other.measure);
  const PairedUnits pairs = paired_units(pair.baseline.scores(name), pair.candidate.scores(name),
                                         pair.baseline.finished().size(), run.units.size(), run.unit());
  UnitScoreGain gain{score_gain(pairs, {}, options.resampling, options.resamples), score, std::nullopt};
  if (options.margin) gain.equivalence = crossed_equivalence(gain.difference, *options.margin);
  return gain;
}

OrderedJson equivalence_json(const Equivalence& equivalence) {
  OrderedJson json = {{"margin", equivalence.margin}};
  put(json, "p", equivalence.p);
  put(json, "interval_90", equivalence.interval);
  json["equivalent"] = equivalence.flatness == Flatness::equivalent;
  return json;
}

}  // namespace

std::string ExperimentComparison::title() const {
  return fmt::format("{} against {} on {}", candidate, baseline, printable(data_set, 60));
}

std::string ExperimentComparison::selection_note() const {
  if (selection_units == 0) return {};
  return fmt::format("The first {} chose the best epoch too. They count here; gainlens report leaves them out.",
                     counted(selection_units, unit));
}

ExperimentComparison compare_arms(const ExperimentPair& pair, const ExperimentOptions& options) {
  CHECK(!options.margin || (*options.margin > 0 && std::isfinite(*options.margin)), "--margin: {}; must be above 0",
        *options.margin);
  const runfile::ExperimentRun& run = *pair.baseline.run;
  ExperimentComparison comparison{.data_set = run.data_name(),
                                  .split = run.split(),
                                  .unit = run.unit(),
                                  .baseline = pair.baseline.label,
                                  .candidate = pair.candidate.label,
                                  .baseline_seeds = pair.baseline.seeds(),
                                  .candidate_seeds = pair.candidate.seeds(),
                                  .units = run.units.size(),
                                  .selection_units = run.selection_units(),
                                  .scores = {}};
  for (const std::string& name : names_of_scores(run, options))
    comparison.scores.push_back(gain_of_score(pair, name, options));
  return comparison;
}

OrderedJson to_json(const ExperimentComparison& comparison) {
  OrderedJson json = {{"data_set", comparison.data_set},
                      {"unit", comparison.unit},
                      {"baseline", comparison.baseline},
                      {"candidate", comparison.candidate},
                      {"seeds", {{"baseline", comparison.baseline_seeds}, {"candidate", comparison.candidate_seeds}}},
                      {"units", comparison.units},
                      {"split", comparison.split},
                      {"scores", OrderedJson::object()}};
  if (comparison.selection_units > 0) json["selection_units"] = comparison.selection_units;
  for (const UnitScoreGain& gain : comparison.scores) {
    OrderedJson own = {{"better", gain.score.higher_is_better ? "higher" : "lower"}, {"measure", gain.score.measure}};
    own.update(to_json(static_cast<const ScoreGain&>(gain)));
    if (gain.equivalence) own["equivalence"] = equivalence_json(*gain.equivalence);
    json["scores"][gain.score.name] = std::move(own);
  }
  return json;
}

}  // namespace gainlens::analyses
