#include "reports/terminal/estimators_terminal.h"

#include "reports/estimators/estimator_words.h"

#include <fmt/format.h>

namespace gainlens::reports {
namespace {

using analyses::EstimatorAccuracy;
using analyses::EstimatorTruth;
using analyses::TruthCell;
using analyses::TruthScenario;

constexpr std::size_t name_width = 18, number_width = 7;

std::string heading(const EstimatorTruth& truth, const std::vector<std::size_t>& positions) {
  std::string numbers;
  for (const std::size_t i : positions)
    numbers += fmt::format("{:>{}}", n_eff_number(truth.options.n_eff[i]), number_width);
  const std::size_t width = numbers.size();
  return fmt::format("{0:<{1}}{2:>{3}}{4:>{3}}  {5:<13} {6}\n{7:<{1}}{8}{8}\n", "", name_width, "bias of V", width,
                     "coverage of 95%", "V right at", "interval right at", "n_eff", numbers);
}

std::string scenario_rows(const EstimatorTruth& truth, TruthScenario scenario,
                          const std::vector<std::size_t>& positions) {
  std::string text;
  for (std::size_t estimator = 0; estimator < bft::all_estimators.size(); ++estimator) {
    text += fmt::format("{:<{}}", bft::name_of(bft::all_estimators[estimator]), name_width);
    const auto at = [&](std::size_t i) -> const EstimatorAccuracy& {
      return truth.cell(scenario, i).estimators[estimator];
    };
    for (const std::size_t i : positions) text += fmt::format("{:>{}}", bias_number(at(i).bias), number_width);
    for (const std::size_t i : positions) text += fmt::format("{:>{}}", coverage_number(at(i).coverage), number_width);
    const analyses::TrustedAt& trusted = truth.trusted(scenario, bft::all_estimators[estimator]);
    text += fmt::format("  {:<13} {}\n", n_eff_in_words(trusted.unbiased, truth.options.n_eff),
                        n_eff_in_words(trusted.covering, truth.options.n_eff));
  }
  return text;
}

std::string equal_rows(const EstimatorTruth& truth, const std::vector<std::size_t>& positions) {
  std::string text;
  for (std::size_t estimator = 0; estimator < bft::all_estimators.size(); ++estimator) {
    text += fmt::format("{:<{}}", bft::name_of(bft::all_estimators[estimator]), name_width);
    for (const std::size_t i : positions) {
      const auto& v = truth.cell(TruthScenario::equal_values, i).estimators[estimator].mean_variance;
      text += v ? fmt::format("{:>{}.3f}", *v / truth.prior_variance, number_width)
                : fmt::format("{:>{}}", "–", number_width);
    }
    text += '\n';
  }
  return text;
}

}  // namespace

std::string print_estimators(const EstimatorTruth& truth) {
  const auto positions = shown_positions(truth.options.n_eff);
  std::string text = fmt::format(
      "{} draws of each scenario and n_eff; {} keys; sigma0^2 = 1/{}; seed {}\n"
      "bias of V: mean of V over the true variance of e, less 1 (×N: above three times the true variance)\n"
      "right at: the n_eff with V within 10% on average, and with coverage from 93% to 97%\n",
      truth.options.draws, analyses::truth_keys, truth.options.dimensions, truth.options.seed);
  for (const TruthScenario scenario : analyses::truth_scenarios) {
    text += fmt::format("\n{}: {}\ntarget: {}\n", name_of(scenario), description_of(scenario), target_of(scenario));
    if (scenario == TruthScenario::equal_values) {
      text +=
          fmt::format("{:<{}}V / sigma0^2, where the true variance is 0\n{:<{}}", "", name_width, "n_eff", name_width);
      for (const std::size_t i : positions)
        text += fmt::format("{:>{}}", n_eff_number(truth.options.n_eff[i]), number_width);
      text += '\n' + equal_rows(truth, positions);
    } else {
      text += heading(truth, positions) + scenario_rows(truth, scenario, positions);
    }
  }
  return text;
}

}  // namespace gainlens::reports
