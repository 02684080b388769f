#pragma once

#include "runfile/query_windows.h"

#include <span>

namespace gainlens::sweep {

/// Norms of one query of one head, in head space. Head space is before W_O, because the layers of the paper have no
/// W_O.
struct SinkNorms {
  double update;  ///< delta: ||e||, or ||K o e|| where the gain is applied
  double first;   ///< epsilon: norm of the value of key 0
  double others;  ///< norm of vbar: the mean of the other keys' values, with the weights of these keys rescaled to sum
                  ///< to 1
  double least;   ///< mu: smallest norm among the values of the other keys
};

/// c = ||vbar|| / mu, at most 1. NaN if mu = 0: the lemma then says nothing.
double sink_alignment(const SinkNorms& norms);

/// The lower bound 1 - (delta + epsilon) / (mu c) on the weight of key 0, in (-inf, 1]. A bound below 0 says nothing.
/// -inf if mu c = 0. Source: bft.tex, Lemma sink-necessity.
double sink_bound(const SinkNorms& norms);

using runfile::bound_rounding;

/// The lemma over the queries of one head. A query that does not see the keys that the lemma needs is left out.
struct SinkBoundSummary {
  double bound;       ///< mean of max(0, bound)
  double gain_bound;  ///< mean of max(0, bound) with ||K o e|| in place of ||e||
  double alignment;   ///< mean of c
  double vacuous;     ///< share of queries whose bound is not above 0
  double slack;       ///< mean of weight - bound over the queries whose bound is above 0; NaN if there is no such query
  /// Smallest weight - bound. A value below -bound_rounding would violate the lemma. NaN if no bound is finite.
  double slack_min;
  /// Share of queries whose weight is below the bound with ||K o e|| by more than bound_rounding.
  double gain_violated;
};

/// Rows of one head with one entry per query; NaN if the query does not see the key.
struct SinkRows {
  std::span<const double> first_weight;          ///< weight of key 0 among the keys, without a learned sink logit
  std::span<const double> estimate_norm;         ///< ||e||
  std::span<const double> gained_estimate_norm;  ///< ||K o e||
  std::span<const double> without_first_norm;    ///< ||vbar||
};

/// @param rows   rows of the same size
/// @param first  as in SinkNorms
/// @param least  as in SinkNorms, but over all keys of the chunk except key 0. It is at most the minimum over the keys
///     that a query sees. The bound therefore holds for every query, and is a little weaker than it could be.
SinkBoundSummary summarise_sink_bound(const SinkRows& rows, double first, double least);

}  // namespace gainlens::sweep
