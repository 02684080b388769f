#include "analyses/statistics.h"

#include "core/check.h"
#include "core/counted.h"

#include <boost/math/distributions/students_t.hpp>
#include <boost/math/statistics/bivariate_statistics.hpp>
#include <boost/math/statistics/univariate_statistics.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace gainlens::analyses {
namespace {

double largest_size(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

bool constant(std::span<const double> values) {
  return alike(values, largest_size(values));
}

/// Two-sided p of a correlation r under independence of the points.
Measured naive_p(const Measured& r, double degrees_of_freedom) {
  if (!r) return Measured::none(r.reason());
  if (degrees_of_freedom < 1) return Measured::none("no degrees of freedom are left");
  const double unexplained = 1 - *r * *r;
  if (unexplained <= 0) return 0.0;
  const double t = std::abs(*r) * std::sqrt(degrees_of_freedom / unexplained);
  return 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(degrees_of_freedom), t));
}

Measured coefficient(std::span<const double> x, std::span<const double> y, PairNames names) {
  if (x.size() < 3)
    return Measured::none(fmt::format("{}; a correlation needs at least 3", counted(x.size(), "point")));
  if (constant(x)) return Measured::none(fmt::format("{} is constant", names.x));
  if (constant(y)) return Measured::none(fmt::format("{} is constant", names.y));
  return boost::math::statistics::correlation_coefficient(x, y);
}

/// Both sides of the pairs, as values and as ranks.
struct Pairs {
  std::vector<double> x, y, x_ranks, y_ranks;
};

Correlation correlate(const Pairs& pairs, std::size_t means_taken, PairNames names) {
  const double degrees_of_freedom = static_cast<double>(pairs.x.size()) - static_cast<double>(means_taken) - 1;
  const Measured pearson = coefficient(pairs.x, pairs.y, names);
  const Measured spearman = coefficient(pairs.x_ranks, pairs.y_ranks, names);
  return {pairs.x.size(), pearson, naive_p(pearson, degrees_of_freedom), spearman,
          naive_p(spearman, degrees_of_freedom)};
}

/// Appends the values minus their mean; exact zeros if they are alike, because rounding must not look like variation.
void append_centred(std::vector<double>& to, std::span<const double> values) {
  const bool zeros = constant(values);
  const double centre = mean(values);
  for (const double value : values) to.push_back(zeros ? 0 : value - centre);
}

void check_pairs(std::span<const double> x, std::span<const double> y) {
  ASSERT(x.size() == y.size(), "{} and {} values", x.size(), y.size());
  const auto finite = [](double value) { return std::isfinite(value); };
  ASSERT(std::all_of(x.begin(), x.end(), finite) && std::all_of(y.begin(), y.end(), finite), "a value is not finite");
}

}  // namespace

Measured skewness(std::span<const double> values, double scale) {
  if (values.size() < 3) return Measured::none("a skewness needs at least 3 values");
  if (alike(values, scale)) return Measured::none("all values are alike");
  const double centre = mean(values), deviation = std::sqrt(population_variance(values));
  double cubes = 0;
  for (const double value : values) cubes += std::pow((value - centre) / deviation, 3);
  return cubes / static_cast<double>(values.size());
}

bool is_rounding(double number, double scale) {
  return std::abs(number) <= rounding_share * scale;
}

bool alike(std::span<const double> values, double scale) {
  ASSERT(!values.empty(), "the spread of nothing");
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return is_rounding(*most - *least, scale);
}

std::vector<double> without_rounding(std::span<const double> values, double scale) {
  std::vector<double> magnitudes = {0};
  for (const double value : values) magnitudes.push_back(std::abs(value));
  std::sort(magnitudes.begin(), magnitudes.end());
  std::vector<double> result;
  result.reserve(values.size());
  for (const double value : values) {
    // Clusters are counted from the smallest magnitude on, so that none is wider than rounding.
    double first = 0;
    for (const double magnitude : magnitudes) {
      if (magnitude > std::abs(value)) break;
      if (!is_rounding(magnitude - first, scale)) first = magnitude;
    }
    result.push_back(value < 0 && first > 0 ? -first : first);
  }
  return result;
}

double mean(std::span<const double> values) {
  ASSERT(!values.empty(), "mean of nothing");
  return boost::math::statistics::mean(values.begin(), values.end());
}

double population_variance(std::span<const double> values) {
  ASSERT(!values.empty(), "variance of nothing");
  return boost::math::statistics::variance(values.begin(), values.end());
}

double median(std::vector<double> values) {
  ASSERT(!values.empty(), "median of nothing");
  return boost::math::statistics::median(values.begin(), values.end());
}

Estimate mean_estimate(std::span<const double> values) {
  ASSERT(values.size() >= 2, "the error of a mean of {} values", values.size());
  const auto n = static_cast<double>(values.size());
  return {mean(values), std::sqrt(boost::math::statistics::sample_variance(values.begin(), values.end()) / n), n - 1};
}

double jackknife_error(std::span<const double> without_one) {
  const auto units = static_cast<double>(without_one.size());
  return std::sqrt((units - 1) * population_variance(without_one));  // (G - 1) / G times the sum of squares
}

Interval student_interval(const Estimate& estimate, double level) {
  ASSERT(std::isfinite(estimate.error) && estimate.degrees_of_freedom > 0, "an error of {} with {} degrees of freedom",
         estimate.error, estimate.degrees_of_freedom);
  const double reach =
      estimate.error * boost::math::quantile(boost::math::students_t(estimate.degrees_of_freedom), 1 - (1 - level) / 2);
  return {estimate.value - reach, estimate.value + reach};
}

Maybe<Interval> mean_interval(std::span<const double> values) {
  if (values.size() < 2)
    return Maybe<Interval>::none(fmt::format("an interval needs at least 2 chunks; there {} {}",
                                             values.size() == 1 ? "is" : "are", values.size()));
  return student_interval(mean_estimate(values));
}

std::vector<double> average_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i) ranks[order[i]] = static_cast<double>(first + 1 + end) / 2;
    first = end;
  }
  return ranks;
}

Correlation correlation(std::span<const double> x, std::span<const double> y, PairNames names) {
  check_pairs(x, y);
  return correlate({{x.begin(), x.end()}, {y.begin(), y.end()}, average_ranks(x), average_ranks(y)}, 1, names);
}

Correlation correlation_within(std::span<const double> x, std::span<const double> y, std::span<const std::size_t> group,
                               PairNames names) {
  check_pairs(x, y);
  ASSERT(group.size() == x.size(), "{} group numbers for {} points", group.size(), x.size());
  std::map<std::size_t, std::pair<std::vector<double>, std::vector<double>>> members;
  for (std::size_t i = 0; i < x.size(); ++i) {
    members[group[i]].first.push_back(x[i]);
    members[group[i]].second.push_back(y[i]);
  }
  std::erase_if(members, [](const auto& entry) { return entry.second.first.size() < 2; });

  Pairs inside;
  for (const auto& [number, values] : members) {
    append_centred(inside.x, values.first);
    append_centred(inside.y, values.second);
    append_centred(inside.x_ranks, average_ranks(values.first));
    append_centred(inside.y_ranks, average_ranks(values.second));
  }
  return correlate(inside, members.size(), names);
}

}  // namespace gainlens::analyses
