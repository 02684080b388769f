#include "reports/estimators/estimator_words.h"
#include "reports/estimators/sections.h"
#include "reports/words/numbers.h"

#include <fmt/format.h>

namespace gainlens::reports {
namespace {

using analyses::EstimatorAccuracy;
using analyses::EstimatorTruth;
using analyses::TruthCell;
using analyses::TruthScenario;
using Judged = std::span<const JudgedEstimators>;

Caption caption_of() {
  return {
      "Above: mean of the estimated variance V over draws, divided by the true variance of e. Below: share of draws in "
      "which e ± 1.96 sqrt(V) holds the target; the grey band is 93% to 97%. V = 0 and what lies outside the axes is "
      "not drawn. Where scores have no noise, the weight-free delta method is REML.",
      "It shows which estimator is right on average, and whose interval holds its level, at which n_eff.",
      "The scenarios are simple: values of different keys are independent. A trained model is none of them."};
}

/// "bias" or "coverage" at some n_eff, and then the spread at the same.
PaperTable accuracy_table(const EstimatorTruth& truth) {
  const auto positions = shown_positions(truth.options.n_eff);
  PaperTable table{"estimators",
                   "Bias: mean of V less the true variance, as a share of the latter; ×N where V is above three times "
                   "the true variance. Coverage: share of draws in which e ± 1.96 sqrt(V) holds the target. Spread: "
                   "standard deviation of V over draws, divided by the true variance. Columns are n_eff.",
                   {{"estimator", true}},
                   {},
                   {{"", 1}}};
  for (const char* const heading : {"bias", "coverage", "spread"}) {
    table.spans.push_back({heading, positions.size()});
    for (const std::size_t i : positions) table.columns.push_back({n_eff_number(truth.options.n_eff[i])});
  }
  for (const TruthScenario scenario : analyses::truth_scenarios) {
    if (scenario == TruthScenario::equal_values) continue;
    table.rows.push_back({fmt::format("{}: {}; target: {}", scenario_in_words(scenario), description_of(scenario),
                                      target_of(scenario))});
    for (std::size_t estimator = 0; estimator < bft::all_estimators.size(); ++estimator) {
      std::vector<std::string> row = {estimator_in_words(bft::all_estimators[estimator])};
      const auto at = [&](std::size_t i) -> const EstimatorAccuracy& {
        return truth.cell(scenario, i).estimators[estimator];
      };
      for (const std::size_t i : positions) row.push_back(bias_number(at(i).bias));
      for (const std::size_t i : positions) row.push_back(coverage_number(at(i).coverage));
      for (const std::size_t i : positions) row.push_back(spread_number(at(i).spread));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

PaperTable equal_values_table(const EstimatorTruth& truth) {
  const auto positions = shown_positions(truth.options.n_eff);
  PaperTable table{"equal-values",
                   "All values are equal, so the true variance is 0. V divided by sigma0^2: what the prior alone "
                   "gives. Columns are n_eff.",
                   {{"estimator", true}},
                   {}};
  for (const std::size_t i : positions) table.columns.push_back({n_eff_number(truth.options.n_eff[i])});
  for (std::size_t estimator = 0; estimator < bft::all_estimators.size(); ++estimator) {
    std::vector<std::string> row = {estimator_in_words(bft::all_estimators[estimator])};
    for (const std::size_t i : positions) {
      const auto& v = truth.cell(TruthScenario::equal_values, i).estimators[estimator].mean_variance;
      // Rounding of a sum of weights leaves about 1e-32.
      row.push_back(v && *v < 1e-20 * truth.prior_variance ? "0" : v ? shown(*v / truth.prior_variance) : "–");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<Block> accuracy_blocks(Judged judged) {
  const EstimatorTruth& truth = *judged.front().truth;
  return {CaptionedFigure{"estimators", "Estimated and true variance", caption_of(), estimators_figure(truth)},
          accuracy_table(truth), equal_values_table(truth)};
}

std::vector<CsvTable> accuracy_tables(const JudgedEstimators& judged) {
  CsvTable table{"estimators",
                 {"scenario", "n_eff", "true_variance", "true_variance_error", "shift", "estimator", "undefined",
                  "mean_variance", "bias", "bias_error", "spread", "coverage", "coverage_error"},
                 {}};
  for (const TruthCell& one : judged.truth->cells) {
    for (const EstimatorAccuracy& accuracy : one.estimators)
      table.rows.push_back({std::string(name_of(one.scenario)), one.n_eff, one.true_variance, one.truth_error,
                            one.shift, std::string(bft::name_of(accuracy.estimator)), accuracy.undefined,
                            cell(accuracy.mean_variance), cell(accuracy.bias), cell(accuracy.bias_error),
                            cell(accuracy.spread), cell(accuracy.coverage), cell(accuracy.coverage_error)});
  }
  return {table};
}

}  // namespace

const Section<JudgedEstimators> accuracy_section = {
    .name = "accuracy",
    .title = "Bias, coverage and spread",
    .question = "Is the estimated variance right?",
    .files = {"estimators", "equal-values"},
    .keys = {"estimators"},
    .blocks = accuracy_blocks,
    .add_json = [](const JudgedEstimators& judged, OrderedJson& json) { json["estimators"] = to_json(*judged.truth); },
    .tables = accuracy_tables};

}  // namespace gainlens::reports
