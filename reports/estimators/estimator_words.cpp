#include "reports/estimators/estimator_words.h"

#include "core/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace gainlens::reports {
namespace {

constexpr std::size_t max_positions = 4;
constexpr std::size_t max_exceptions = 2;  // that "all but" names

std::string list_of(std::span<const double> numbers) {
  std::vector<std::string> words;
  for (const double n : numbers) words.push_back(n_eff_number(n));
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

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
