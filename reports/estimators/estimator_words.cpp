#include "reports/estimators/estimator_words.h"

#include "core/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace gainlens::reports {
namespace {

using analyses::EstimatorAccuracy, analyses::EstimatorTruth, analyses::TruthCell, analyses::TruthScenario;

constexpr std::size_t estimator_width = 18, number_width = 7;

std::string heading(const EstimatorTruth& truth, const std::vector<std::size_t>& positions) {
  std::string numbers;
  for (const std::size_t i : positions)
    numbers += fmt::format("{:>{}}", n_eff_number(truth.options.n_eff[i]), number_width);
  const std::size_t width = numbers.size();
  return fmt::format("{0:<{1}}{2:>{3}}{4:>{3}}  {5:<13} {6}\n{7:<{1}}{8}{8}\n", "", estimator_width, "bias of V", width,
                     "coverage of 95%", "V right at", "interval right at", "n_eff", numbers);
}

std::string scenario_rows(const EstimatorTruth& truth, TruthScenario scenario,
                          const std::vector<std::size_t>& positions) {
  std::string text;
  for (std::size_t estimator = 0; estimator < bft::all_estimators.size(); ++estimator) {
    text += fmt::format("{:<{}}", bft::name_of(bft::all_estimators[estimator]), estimator_width);
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
    text += fmt::format("{:<{}}", bft::name_of(bft::all_estimators[estimator]), estimator_width);
    for (const std::size_t i : positions) {
      const auto& v = truth.cell(TruthScenario::equal_values, i).estimators[estimator].mean_variance;
      text += v ? fmt::format("{:>{}.3f}", *v / truth.prior_variance, number_width)
                : fmt::format("{:>{}}", "–", number_width);
    }
    text += '\n';
  }
  return text;
}

constexpr std::size_t max_positions = 4;
constexpr std::size_t max_exceptions = 2;  // that "all but" names

std::string list_of(std::span<const double> numbers) {
  std::vector<std::string> words;
  for (const double n : numbers) words.push_back(n_eff_number(n));
  return fmt::format("{}", fmt::join(words, ", "));
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
      text += fmt::format("{:<{}}V / sigma0^2, where the true variance is 0\n{:<{}}", "", estimator_width, "n_eff",
                          estimator_width);
      for (const std::size_t i : positions)
        text += fmt::format("{:>{}}", n_eff_number(truth.options.n_eff[i]), number_width);
      text += '\n' + equal_rows(truth, positions);
    } else {
      text += heading(truth, positions) + scenario_rows(truth, scenario, positions);
    }
  }
  return text;
}

std::string n_eff_in_words(std::span<const double> found, std::span<const double> grid) {
  if (found.empty()) return "none";
  if (found.size() == grid.size()) return "all";
  const auto first = std::find(grid.begin(), grid.end(), found.front());
  const bool neighbours =
      static_cast<std::size_t>(grid.end() - first) >= found.size() && std::equal(found.begin(), found.end(), first);
  if (!neighbours) {
    std::vector<double> missing;
    std::set_difference(grid.begin(), grid.end(), found.begin(), found.end(), std::back_inserter(missing));
    return missing.size() <= max_exceptions && found.size() > missing.size() ? "all but " + list_of(missing)
                                                                             : list_of(found);
  }
  if (found.size() == 1) return list_of(found);
  if (found.back() == grid.back()) return n_eff_number(found.front()) + " and more";
  if (found.front() == grid.front()) return "up to " + n_eff_number(found.back());
  return fmt::format("{} to {}", n_eff_number(found.front()), n_eff_number(found.back()));
}

std::vector<std::size_t> shown_positions(std::span<const double> grid) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    if (grid[i] > 1 || grid.size() == 1) positions.push_back(i);
  }
  if (positions.size() <= max_positions) return positions;
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < max_positions; ++i)
    some.push_back(positions[i * (positions.size() - 1) / (max_positions - 1)]);
  return some;
}

std::string n_eff_number(double n_eff) {
  return fmt::format("{:g}", n_eff);
}

std::string bias_number(const Measured& bias) {
  if (!bias) return "–";
  const double ratio = *bias + 1;
  if (ratio > 3) return fmt::format("×{:.{}f}", ratio, ratio < 10 ? 1 : 0);
  const double percent = std::round(100 * *bias);
  return percent == 0 ? "0%" : fmt::format("{:+.0f}%", percent);
}

std::string coverage_number(const Measured& coverage) {
  return coverage ? fmt::format("{:.1f}%", 100 * *coverage) : "–";
}

std::string spread_number(const Measured& spread) {
  return spread ? fmt::format("{:.{}f}", *spread, *spread < 10 ? 2 : 0) : "–";
}

std::string estimator_in_words(bft::Estimator estimator) {
  switch (estimator) {
    case bft::Estimator::reml:
      return "REML (paper)";
    case bft::Estimator::reml_naive:
      return "REML, naive";
    case bft::Estimator::reml_conjugate:
      return "REML, conjugate";
    case bft::Estimator::sandwich:
      return "Sandwich";
    case bft::Estimator::kish:
      return "Kish";
    case bft::Estimator::delta:
      return "Delta";
    case bft::Estimator::delta_weight_free:
      return "Delta, weight-free";
  }
  throw_internal_error(__FILE__, __LINE__, "an estimator without words");
}

std::string scenario_in_words(analyses::TruthScenario scenario) {
  std::string words(name_of(scenario));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

}  // namespace gainlens::reports
