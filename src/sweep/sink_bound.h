#pragma once

#include "runfile/windows.h"

#include <span>

namespace gainlens::sweep {

/// Norms of one query of one head, in head space: before W_O, since the layers of the paper have none.
struct SinkNorms {
  double update;  ///< delta: ||e||, or ||K o e|| where the gain is applied
  double first;   ///< epsilon: norm of the value of key 0
  double others;  ///< norm of vbar, the mean of the other keys' values under their weights renormalised
  double least;   ///< mu: smallest norm of a value of the other keys
};

/// c = ||vbar|| / mu, at most 1. NaN where mu = 0: then the lemma says nothing.
double sink_alignment(const SinkNorms& norms);

/// The lower bound 1 - (delta + epsilon) / (mu c) on the weight of key 0, in (-inf, 1]; below 0 it says nothing. -inf
/// where mu c = 0. Source: bft.tex, Lemma sink-necessity.
double sink_bound(const SinkNorms& norms);

using runfile::bound_rounding;

/// The lemma over the queries of one head; queries without the keys it needs are left out.
struct SinkBoundSummary {
  double bound;       ///< mean of max(0, bound)
  double gain_bound;  ///< the same with ||K o e|| for ||e||
  double alignment;   ///< mean of c
  double vacuous;     ///< share of queries whose bound is not above 0
  double slack;       ///< mean of weight - bound over the other queries; NaN where there are none
  double slack_min;  ///< smallest weight - bound; below -bound_rounding the lemma would be violated. NaN where no bound
                     ///< is finite
  double
      gain_violated;  ///< share of queries whose weight is below the bound with ||K o e|| by more than bound_rounding
};

/// Rows of one head, one entry a query; NaN where a query sees no such key.
struct SinkRows {
  std::span<const double> first_weight;          ///< weight of key 0 among the keys, a learned sink logit left out
  std::span<const double> estimate_norm;         ///< ||e||
  std::span<const double> gained_estimate_norm;  ///< ||K o e||
  std::span<const double> without_first_norm;    ///< ||vbar||
};

/// @param rows         of the same size
/// @param first, least as in SinkNorms; `least` over all keys of the chunk but key 0, which is no larger than over the
///                     visible ones, so that the bound holds for every query and is a little weaker than it could be
SinkBoundSummary summarise_sink_bound(const SinkRows& rows, double first, double least);

}  // namespace gainlens::sweep
