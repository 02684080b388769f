#pragma once

#include "analyses/measured.h"

#include <cstddef>
#include <span>

namespace gainlens::analyses {

/// How a number stands among draws at random. Nothing is assumed of their distribution: it may have two modes.
struct Exceedance {
  std::size_t draws;
  std::size_t lower;  ///< draws below the number
  std::size_t ties;   ///< equal to it, up to rounding
  /// 95%, exact, of the share of all possible draws that lie below the number (with ties: at or below for the upper
  /// end): Clopper and Pearson 1934.
  Interval share;
  /// Two-sided, that the number is such a draw itself: twice the smaller share of numbers at or beyond it, itself
  /// counted. Missing with fewer than `fewest_ranked_draws`.
  Measured p;
};
/// The fewest draws with which this p can reach 5%.
inline constexpr std::size_t fewest_ranked_draws = 39;

/// Source: docs/analyses/inactive-heads.md, "Inference".
/// @param draws  at least one, finite
Exceedance exceedance(double number, std::span<const double> draws);

}  // namespace gainlens::analyses
