#pragma once

#include "analyses/measured.h"
#include "analyses/table.h"
#include "core/json.h"
#include "runfile/run_reader.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Which heads does nothing need? docs/analyses/inactive-heads.md.

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

/// A number of every head, by which heads are chosen to be set to zero.
struct HeadScore {
  std::string name;
  std::string source;          ///< "literature" or "filter"
  bool largest_first;          ///< which heads it calls inactive: those with the largest numbers, or the smallest
  std::vector<double> values;  ///< [layer, head] finite
};

struct HeadScores {
  std::vector<HeadScore> scores;
  std::vector<std::string> left_out;  ///< scores that do not exist in this run, each with the reason
};

/// The scores that a sweep stores, at its longest length: of the literature raw and over the mean of their layer, and
/// those of the filter.
/// @throws InvalidArgument  the run lacks a layer of the model, or a statistic
HeadScores head_scores(const runfile::RunReader& reader);

/// The heads in the order in which a score gives them up. Ties keep the order of the model.
std::vector<std::size_t> order_of(const HeadScore& score);

/// Heads of equal score, of which some are set to zero and some are not: the number of a head chooses among them.
struct BrokenTie {
  double share;       ///< of all heads, set to zero
  std::size_t equal;  ///< heads with the same score
  std::size_t taken;  ///< of these, set to zero: those that come first in the model
};
/// The ties at each of the zeroed_counts(), where there is one.
std::vector<BrokenTie> broken_ties(const HeadScore& score);
/// The same at random. @param draw  which of several orders
std::vector<std::size_t> random_order(std::size_t heads, std::uint64_t seed, std::size_t draw);
/// How many heads are set to zero together: 5, 10, .. 30% of them, rounded, each number once and at least 1.
std::vector<std::size_t> zeroed_counts(std::size_t heads);

/// Changes of the loss, in nats per token.
struct InactiveHeadsInput {
  std::vector<HeadScore> scores;
  std::vector<double> shares;                               ///< ascending, above 0: heads set to zero of all
  std::vector<std::vector<double>> single;                  ///< [head][document] one head set to zero
  std::vector<std::vector<std::vector<double>>> by_score;   ///< [score][share][document]
  std::vector<std::vector<std::vector<double>>> by_random;  ///< [draw][share][document]
};

/// The curve of one score.
struct ScoreCurve {
  std::string name;
  std::string source;
  std::vector<double> changes;  ///< [share] mean over documents
  double area;                  ///< mean change over shares from 0 to the largest, by trapezoids
  Maybe<Interval> interval;     ///< 95% over documents
  double against_random;        ///< area minus the mean one of random heads
  Exceedance among_random;      ///< of the area among those of the draws, on these documents
  Measured spearman;            ///< of the score, turned so that inactive is small, with the single changes
  std::vector<BrokenTie> ties;
};

struct InactiveHeads {
  std::size_t documents;
  std::size_t heads;
  std::vector<double> shares;
  std::vector<ScoreCurve> curves;      ///< smallest area first
  std::vector<double> random_changes;  ///< [share] mean over draws and documents
  double random_area;
  std::vector<double> area_of_draw;  ///< ascending; draws may have two modes, so that their mean has no interval
  std::string best_literature, best_filter;
  double filter_minus_literature;  ///< of the areas of the two best; they are chosen by these same documents
  Maybe<Interval> filter_interval;
};

InactiveHeads inactive_heads(const InactiveHeadsInput& input);

/// The scores, the best first, and random heads below them.
Table scores_of(const InactiveHeads& result);
/// Where the number of a head chooses.
Table ties_of(std::span<const ScoreCurve> curves);

OrderedJson to_json(const InactiveHeads& result);

}  // namespace gainlens::analyses
