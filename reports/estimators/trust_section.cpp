#include "reports/estimators/estimator_words.h"
#include "reports/estimators/sections.h"

#include <fmt/format.h>

namespace gainlens::reports {
namespace {

using analyses::EstimatorTruth;
using analyses::TruthScenario;
using Judged = std::span<const JudgedEstimators>;

PaperTable trust_table(const EstimatorTruth& truth) {
  PaperTable table{"estimators-trust",
                   "At which n_eff an estimator can be trusted. Variance: the mean of V is within 10% of the true "
                   "variance. Interval: e ± 1.96 sqrt(V) holds the target in 93% to 97% of draws.",
                   {{"", true}},
                   {}};
  for (const bft::Estimator estimator : bft::all_estimators)
    table.columns.push_back({estimator_in_words(estimator), true});
  for (const TruthScenario scenario : analyses::truth_scenarios) {
    if (scenario == TruthScenario::equal_values) continue;
    table.rows.push_back({scenario_in_words(scenario)});
    std::vector<std::string> variance = {"variance"}, interval = {"interval"};
    for (const bft::Estimator estimator : bft::all_estimators) {
      const analyses::TrustedAt& at = truth.trusted(scenario, estimator);
      variance.push_back(n_eff_in_words(at.unbiased, truth.options.n_eff));
      interval.push_back(n_eff_in_words(at.covering, truth.options.n_eff));
    }
    table.rows.push_back(std::move(variance));
    table.rows.push_back(std::move(interval));
  }
  return table;
}

std::vector<Block> trust_blocks(Judged judged) {
  const EstimatorTruth& truth = *judged.front().truth;
  std::vector<Block> all = {trust_table(truth)};
  const std::size_t last = truth.options.n_eff.size() - 1;
  all.push_back(paragraph(fmt::format(
      "dependent: at n_eff = {:g} the mean of e is {:+.2f} deviations of the values above their mean, because the "
      "query "
      "gives more weight to larger values. The intervals are judged about the mean of e. They say nothing of the mean "
      "of the values.",
      truth.options.n_eff[last], truth.cell(TruthScenario::dependent, last).shift)));
  all.push_back(paragraph(fmt::format(
      "noisy tokens: at n_eff = {:g} the noise moves the mean of e by {:+.3f} deviations of the values, because it "
      "reaches scores and values together. This is part of the error of e. No estimator of a variance sees it.",
      truth.options.n_eff[last], truth.cell(TruthScenario::noisy_tokens, last).shift)));
  return all;
}

}  // namespace

const Section<JudgedEstimators> trust_section = {.name = "trust",
                                                 .title = "Which to trust when",
                                                 .question = "Which estimator is right at which n_eff?",
                                                 .files = {"estimators-trust"},
                                                 .blocks = trust_blocks};

}  // namespace gainlens::reports
