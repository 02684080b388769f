#pragma once

#include "analyses/cells.h"
#include "analyses/options.h"
#include "runfile/windows.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::analyses {

using runfile::bound_rounding;

/// The sink lemma at one head, in head space: before W_O, since the layers of the paper have none. Means over
/// second-half queries, then over chunks, then over lengths, each length with the same weight; norms are in the unit of
/// the values.
struct LemmaHead {
  std::int64_t layer;  ///< the model's own number
  std::int64_t head;
  std::int64_t kv_head;
  std::string attention;  ///< "global" or "window:N"
  bool set_apart;         ///< its window hides key 0, so that its weight is 0 and its bound vacuous by construction
  double first_norm;      ///< epsilon: norm of the value of key 0
  double min_norm;        ///< mu: smallest norm of a value of the chunk's other keys
  double others_norm;     ///< ||vbar||: norm of the mean of the other keys' values under their weights renormalised
  double alignment;       ///< c = min(1, ||vbar|| / mu)
  double estimate_norm;   ///< delta: ||e||
  double gained_norm;     ///< ||K o e||, K at lambda = 1
  double bos_mass;        ///< alpha_1: weight of key 0
  double bound;      ///< max(0, 1 - (delta + epsilon) / (mu c)), the lemma's bound on alpha_1 where it says anything
  double vacuous;    ///< share of queries whose bound is not above 0
  Measured slack;    ///< alpha_1 - bound over the other queries
  double slack_min;  ///< smallest alpha_1 - bound of any query, chunk and length; the lemma says that it is not below 0
  double gain_bound;     ///< the bound with ||K o e|| for delta
  double gain_violated;  ///< share of queries whose alpha_1 is below that bound
};

/// Does the sink lemma hold, and does it say anything? The lemma is the triangle inequality, so that it has to hold
/// whatever the model: a violation is a mistake of the measurement. What a run can show is where the bound binds. With
/// the gain the paper proposes the lemma's conclusion need not hold ("the constraint vanishes once K < 1").
struct SinkLemma {
  std::vector<LemmaHead> heads;  ///< layer by layer
  std::size_t left_out;          ///< heads without one of the numbers
  std::size_t judged;            ///< heads that are not set apart: those that the figures below are over
  std::size_t violated;          ///< with slack_min below -bound_rounding
  double slack_min;              ///< smallest of all heads
  double vacuous;                ///< share of queries with a vacuous bound, mean over heads
  std::size_t binding;           ///< heads whose bound is above 0 at more than half of the queries
  Measured slack;                ///< mean over heads with a bound above 0
  double gain_violated;          ///< mean over heads
  std::string finding;           ///< the above in words
};

/// Missing where the run lacks one of the datasets (it was made by an earlier version) or where every layer is set
/// apart. Source: bft.tex, Lemma sink-necessity.
/// @throws InvalidArgument  see sink_lengths()
Maybe<SinkLemma> sink_lemma(const runfile::RunReader& reader, const Options& options = {});
OrderedJson to_json(const SinkLemma& lemma);

}  // namespace gainlens::analyses
