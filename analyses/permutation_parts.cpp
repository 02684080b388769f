#include "analyses/permutation_parts.h"

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
namespace {

constexpr double rounding = 1e-12;  // in units of a correlation: the same sum in another order counts as a tie

/// The mean; exactly the value if all are equal, because rounding must not look like variation.
double exact_mean(const std::vector<double>& values) {
  const bool constant =
      std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
  return constant ? values.front() : mean(values);
}

std::vector<double> all_of(const Blocks& blocks) {
  std::vector<double> all;
  for (const auto& block : blocks) all.insert(all.end(), block.begin(), block.end());
  return all;
}

std::size_t at_least(const std::vector<double>& sums, double bound, double scale) {
  return static_cast<std::size_t>(
      std::count_if(sums.begin(), sums.end(), [&](double sum) { return std::abs(sum) >= bound - rounding * scale; }));
}

double largest(const std::vector<double>& sums) {
  double most = 0;
  for (const double sum : sums) most = std::max(most, std::abs(sum));
  return most;
}

/// The p; missing if the smallest possible p exceeds `significance`.
Measured allowed(double p, double min_p, double arrangements) {
  if (min_p > significance) {
    return Measured::none(fmt::format("not testable: with {} the smallest possible p is {:.2g}, above {:g}",
                                      count_arrangements(arrangements), min_p, significance));
  }
  return p;
}

}  // namespace

Blocks same_where_alike(Blocks blocks) {
  for (std::size_t slot = 0; slot < blocks.front().size(); ++slot) {
    std::vector<double> values;
    double scale = 0;
    for (const auto& block : blocks) {
      values.push_back(block[slot]);
      scale = std::max(scale, std::abs(block[slot]));
    }
    if (!alike(values, scale)) continue;
    for (auto& block : blocks) block[slot] = values.front();
  }
  return blocks;
}

Blocks without_mean(Blocks blocks) {
  const double middle = exact_mean(all_of(blocks));
  for (auto& block : blocks) {
    for (double& value : block) value -= middle;
  }
  return blocks;
}

Blocks without_slot_means(Blocks blocks) {
  for (std::size_t slot = 0; slot < blocks.front().size(); ++slot) {
    std::vector<double> values;
    for (const auto& block : blocks) values.push_back(block[slot]);
    const double middle = exact_mean(values);
    for (auto& block : blocks) block[slot] -= middle;
  }
  return blocks;
}

Blocks ranked(Blocks blocks) {
  const std::vector<double> ranks = average_ranks(all_of(blocks));
  std::size_t next = 0;
  for (auto& block : blocks) {
    for (double& value : block) value = ranks[next++];
  }
  return blocks;
}

void Moments::add(const Blocks& x, const Blocks& y) {
  for (std::size_t block = 0; block < x.size(); ++block) {
    for (std::size_t slot = 0; slot < x[block].size(); ++slot) {
      cross += x[block][slot] * y[block][slot];
      x_squares += x[block][slot] * x[block][slot];
      y_squares += y[block][slot] * y[block][slot];
    }
  }
}

double Moments::scale() const {
  return std::sqrt(x_squares * y_squares);
}

TestedStatistic no_statistic(const std::string& reason) {
  return {Measured::none(reason), Measured::none(reason), Measured::none(reason), Measured::none(reason)};
}

std::optional<TestedStatistic> nothing_to_arrange(const Sums& sums, const PairNames& names, std::string_view constant,
                                                  std::string_view same) {
  if (!(sums.reported.x_squares > 0)) return no_statistic(fmt::format("{} {}", names.x, constant));
  if (!(sums.reported.y_squares > 0)) return no_statistic(fmt::format("{} {}", names.y, constant));
  const bool x_varies = sums.moved.x_squares > 0;
  if (x_varies && sums.moved.y_squares > 0) return std::nullopt;
  const std::string refusal = fmt::format("not testable: {} {}", x_varies ? names.y : names.x, same);
  return TestedStatistic{sums.value(), sums.value(), 1.0, Measured::none(refusal)};
}

TestedStatistic judge_all(const std::vector<double>& crosses, const Sums& sums) {
  const auto all = static_cast<double>(crosses.size());
  const double scale = sums.moved.scale();
  const double least = static_cast<double>(at_least(crosses, largest(crosses), scale)) / all;
  const double p = static_cast<double>(at_least(crosses, std::abs(sums.moved.cross), scale)) / all;
  return {sums.value(), sums.null_mean(), least, allowed(p, least, all)};
}

TestedStatistic judge_drawn(const std::vector<double>& crosses, const Sums& sums, double arrangements) {
  const double drawn = static_cast<double>(crosses.size());
  // 2 because a permutation and its mirror image may tie; among so many, more ties hardly matter
  const double least = std::max(1 / (1 + drawn), 2 / arrangements);
  const double p =
      (1 + static_cast<double>(at_least(crosses, std::abs(sums.moved.cross), sums.moved.scale()))) / (1 + drawn);
  return {sums.value(), sums.null_mean(), least, allowed(p, least, arrangements)};
}

}  // namespace gainlens::analyses
