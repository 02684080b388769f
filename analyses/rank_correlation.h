#pragma once

#include "analyses/measured.h"

#include <cstddef>
#include <span>
#include <vector>

namespace gainlens::analyses {

/// Ranks less their mean, with the sum of squares. Ties share the average of their ranks.
struct CentredRanks {
  explicit CentredRanks(std::span<const double> values);
  /// @param ranks  from 1, those of ties averaged
  static CentredRanks from_ranks(std::vector<double> ranks);
  std::vector<double> ranks;
  double squares = 0;  ///< 0: all values are equal

 private:
  CentredRanks() = default;
  void centre();
};

/// Spearman's correlations of some variables with each other.
class RankCorrelations {
 public:
  /// @param variables  of equal sizes
  explicit RankCorrelations(std::span<const CentredRanks* const> variables);
  std::size_t variables() const { return variables_; }
  /// NaN if one side is constant.
  double rho(std::size_t x, std::size_t y) const;
  /// The partial correlation given other variables. One that is constant explains nothing, and neither does one that
  /// those before it determine. NaN if the given ones determine x or y.
  double partial(std::size_t x, std::size_t y, std::span<const std::size_t> given) const;

 private:
  std::size_t variables_;
  std::vector<double> matrix_;  // [variable, variable]; row and column of a constant one are 0
};

/// The fewest users in a part of them, such as a quintile, for which an interval is given.
inline constexpr std::size_t fewest_users_of_part = 10;
/// Why a part of the users has no interval; empty: it has enough.
std::string too_few_of_part(std::size_t users);

/// 95%, Student, of a statistic of independent groups, from its values with one group left out.
/// @param without_group  NaN: it does not exist without this group, and the interval is missing
/// @param least, most    bounds of the statistic
/// @param entering       groups that the statistic depends on, of which one less are its degrees of freedom; 0: all
/// @pre  at least two groups
Maybe<Interval> left_out_interval(double value, std::span<const double> without_group, double least, double most,
                                  std::size_t entering = 0);

/// The same for two kinds of units that both vary, each in groups of its own: users and items. The two squared errors
/// are added, which counts twice what belongs to a pair of them: never too short by it. Degrees of freedom: the fewer.
/// Source: Cameron, Gelbach and Miller 2011, without the term that they subtract.
Maybe<Interval> left_out_interval(double value, std::span<const double> without_users,
                                  std::span<const double> without_items, double least, double most);

}  // namespace gainlens::analyses
