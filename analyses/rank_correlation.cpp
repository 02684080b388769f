#include "analyses/rank_correlation.h"

#include "analyses/statistics.h"
#include "core/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <utility>

namespace gainlens::analyses {
namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
/// Below it, what is left of a variance of 1 is rounding: other variables determine this one.
constexpr double determined = 1e-12;

/// A statistic with one group of some units left out.
struct LeftOutUnits {
  std::span<const double> without_group;
  const char* name;          // of the units
  std::size_t entering = 0;  // groups that the statistic depends on; 0: all
};

Maybe<Interval> interval_of_left_out(double value, std::initializer_list<LeftOutUnits> all, double least, double most) {
  double variance = 0;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const LeftOutUnits& units : all) {
    if (std::ranges::any_of(units.without_group, [](double x) { return std::isnan(x); }))
      return Maybe<Interval>::none(fmt::format("it does not exist without some of the {}", units.name));
    variance += std::pow(jackknife_error(units.without_group), 2);
    fewest = std::min(fewest, units.entering > 0 ? units.entering : units.without_group.size());
  }
  if (fewest < 2) return Maybe<Interval>::none("it depends on one group alone");
  if (variance == 0) return Interval{value, value};
  const Interval found = student_interval({value, std::sqrt(variance), static_cast<double>(fewest - 1)});
  return Interval{std::max(found.low, least), std::min(found.high, most)};
}

}  // namespace

CentredRanks::CentredRanks(std::span<const double> values) : ranks(average_ranks(values)) {
  centre();
}

CentredRanks CentredRanks::from_ranks(std::vector<double> ranks) {
  CentredRanks made;
  made.ranks = std::move(ranks);
  made.centre();
  return made;
}

void CentredRanks::centre() {
  const double middle = (static_cast<double>(ranks.size()) + 1) / 2;  // exactly, also with ties
  for (double& rank : ranks) rank -= middle;
  squares = std::inner_product(ranks.begin(), ranks.end(), ranks.begin(), 0.0);
}

RankCorrelations::RankCorrelations(std::span<const CentredRanks* const> variables)
    : variables_(variables.size()), matrix_(variables_ * variables_, 0) {
  for (std::size_t i = 0; i < variables_; ++i) {
    const CentredRanks& x = *variables[i];
    if (x.squares == 0) continue;
    matrix_[i * variables_ + i] = 1;
    for (std::size_t j = 0; j < i; ++j) {
      const CentredRanks& y = *variables[j];
      ASSERT(x.ranks.size() == y.ranks.size(), "ranks of {} and {} values", x.ranks.size(), y.ranks.size());
      if (y.squares == 0) continue;
      const double products = std::inner_product(x.ranks.begin(), x.ranks.end(), y.ranks.begin(), 0.0);
      matrix_[i * variables_ + j] = matrix_[j * variables_ + i] =
          std::clamp(products / std::sqrt(x.squares * y.squares), -1.0, 1.0);
    }
  }
}

double RankCorrelations::rho(std::size_t x, std::size_t y) const {
  return partial(x, y, {});
}

double RankCorrelations::partial(std::size_t x, std::size_t y, std::span<const std::size_t> given) const {
  std::vector<double> rest = matrix_;  // covariances of what the given variables so far leave
  const auto of = [&](std::size_t i, std::size_t j) -> double& { return rest[i * variables_ + j]; };
  for (const std::size_t z : given) {
    const double variance = of(z, z);
    if (variance <= determined) continue;
    std::vector<double> shares(variables_);
    for (std::size_t i = 0; i < variables_; ++i) shares[i] = of(i, z);
    for (std::size_t i = 0; i < variables_; ++i) {
      for (std::size_t j = 0; j < variables_; ++j) of(i, j) -= shares[i] * shares[j] / variance;
    }
  }
  if (of(x, x) <= determined || of(y, y) <= determined) return no_value;
  return std::clamp(of(x, y) / std::sqrt(of(x, x) * of(y, y)), -1.0, 1.0);
}

std::string too_few_of_part(std::size_t users) {
  return users < fewest_users_of_part ? fmt::format("fewer than {} users are in this group", fewest_users_of_part) : "";
}

Maybe<Interval> left_out_interval(double value, std::span<const double> without_group, double least, double most,
                                  std::size_t entering) {
  return interval_of_left_out(value, {{without_group, "users", entering}}, least, most);
}

Maybe<Interval> left_out_interval(double value, std::span<const double> without_users,
                                  std::span<const double> without_items, double least, double most) {
  return interval_of_left_out(value, {{without_users, "users"}, {without_items, "items"}}, least, most);
}

}  // namespace gainlens::analyses
