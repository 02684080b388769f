#include "analyses/gain_decisions.h"

#include "analyses/holm.h"
#include "core/counted.h"

#include <utility>

namespace gainlens::analyses {
namespace {

const char* word_of(Decision decision) {
  switch (decision) {
    case Decision::better:
      return "better";
    case Decision::worse:
      return "worse";
    case Decision::not_shown:
      return "not shown";
    case Decision::not_decidable:
      return "not decidable";
  }
  return "";
}

GainDecision decision_of(std::size_t comparison, std::size_t metric, const Maybe<CrossedEstimate>& gain,
                         std::size_t seeds, bool higher_is_better) {
  const Measured p = stated_p(gain);  // Holm's p follows when all are known
  if (!p) {
    const bool few = gain && seeds < fewest_crossed_seeds;
    return {comparison, metric, Decision::not_decidable, p, p, few ? counted(seeds, "seed") : p.reason()};
  }
  const Decision decision = *p > decision_level                     ? Decision::not_shown
                            : (gain->value > 0) == higher_is_better ? Decision::better
                                                                    : Decision::worse;
  return {comparison, metric, decision, p, p, ""};
}

/// Adds Holm's correction over all rows that have a p.
std::vector<GainDecision> with_holm(std::vector<GainDecision> decisions) {
  std::vector<Measured> p;
  for (const GainDecision& decision : decisions) p.push_back(decision.p);
  const std::vector<Measured> corrected = holm_where_present(p);
  for (std::size_t i = 0; i < decisions.size(); ++i) decisions[i].holm = corrected[i];
  return decisions;
}

}  // namespace

std::string GainDecision::in_words() const {
  std::string words = word_of(decision);
  if (decision == Decision::not_decidable) return words + ": " + reason;
  const bool found = decision == Decision::better || decision == Decision::worse;
  return found && *holm > decision_level ? words + ", not after Holm" : words;
}

std::vector<GainDecision> decide(std::span<const ArmComparison> comparisons) {
  std::vector<GainDecision> decisions;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const std::vector<MetricGain>& metrics = comparisons[i].metrics;
    for (std::size_t metric = 0; metric < metrics.size(); ++metric)
      decisions.push_back(decision_of(i, metric, metrics[metric].log_ratio, comparisons[i].baseline_seeds.size(),
                                      /*higher_is_better=*/true));
  }
  return with_holm(std::move(decisions));
}

std::vector<GainDecision> decide(std::span<const ExperimentComparison> comparisons) {
  std::vector<GainDecision> decisions;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const std::vector<UnitScoreGain>& scores = comparisons[i].scores;
    for (std::size_t score = 0; score < scores.size(); ++score)
      decisions.push_back(decision_of(i, score, scores[score].difference, comparisons[i].baseline_seeds.size(),
                                      scores[score].score.higher_is_better));
  }
  return with_holm(std::move(decisions));
}

Maybe<Interval> naive_relative_interval(const SeedComparison& seeds) {
  if (!seeds.interval) return seeds.interval;
  if (!(seeds.baseline.mean > 0)) return Maybe<Interval>::none("the mean of the baseline is 0");
  return Interval{seeds.interval->low / seeds.baseline.mean, seeds.interval->high / seeds.baseline.mean};
}

OrderedJson to_json(const GainDecision& decision) {
  OrderedJson json = {{"decision", word_of(decision.decision)}};
  put(json, "p", decision.p);
  put(json, "p_holm", decision.holm);
  if (decision.decision == Decision::better || decision.decision == Decision::worse)
    json["after_holm"] = decision.holm && *decision.holm <= decision_level;
  if (!decision.reason.empty()) json["reason"] = decision.reason;
  return json;
}

}  // namespace gainlens::analyses
