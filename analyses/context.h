#pragma once

#include "analyses/cells.h"
#include "analyses/equivalence.h"
#include "analyses/options.h"
#include "analyses/shared_text.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// A difference of means over chunks from the shortest length, with its interval: see difference_of_means() for what
/// the shared text does.
struct Change {
  Measured mean;
  Maybe<Interval> interval;
  std::string basis;  ///< what the interval rests on: "5 paired chunks", ...; empty where there is no mean
  Equivalence flat;   ///< is the difference 0 within the margin? At T_min it is 0 by construction: unknown
};

/// One context length of the context figure.
struct ContextPoint {
  Length length;
  Maybe<Aggregate> n_eff;
  Maybe<Aggregate> gate;                     ///< sigmoid of the gate's score, in (0, 1)
  Maybe<Aggregate> observation_precision;    ///< mean of lambda_obs over queries: not the lambda* of gain_theory
  Measured precision_ratio;                  ///< lambda_obs(T) / lambda_obs(T_min), of the aggregated means
  Measured precision_ratio_deviation;        ///< standard deviation of lambda_obs(T) / lambda_obs(T_min)
  Maybe<Interval> precision_ratio_interval;  ///< of that ratio of means: Student on its logarithm. log_precision is
                                             ///< another number, the mean of the chunks' logarithms

  Change logit_gate;     ///< change of logit(chunk mean of the gate) since T_min
  Change log_precision;  ///< change of ln(chunk mean of lambda_obs) since T_min
  Change difference;     ///< logit_gate - log_precision, chunk by chunk
};

/// Does the gate follow the evidence? n_eff, gate and lambda_obs against context length over the deep layers'
/// last-quarter queries. The gate and the precision are compared like for like as logit(gate) and ln lambda_obs, since
/// K = sigmoid(ln lambda_obs - ln lambda).
struct Context {
  std::vector<std::int64_t> deep_layers;  ///< the model's own numbers
  bool paired;                            ///< changes are paired by chunk, see is_paired()
  std::string sharing;                    ///< which text the lengths share, and what was done about it: sentences
  std::vector<ContextPoint> points;       ///< shortest first; the first is T_min
  double equivalence_margin;              ///< of logit(gate) and ln lambda_obs
  std::string margin_meaning;             ///< why this margin, in words
};

/// Source: bft.tex, Fig. gate-frozen; method.md, Sweep protocol.
/// @throws InvalidArgument  see deep_layers() and usable_lengths()
Context context(const runfile::RunReader& reader, const Options& options = {});

/// The same over all layers of one kind of attention.
struct KindContext {
  std::string attention;  ///< "global" or "window:512"
  Context context;        ///< its deep_layers are all layers of this kind
};

/// One of each kind, in the order of the layers; empty where all layers are of one kind. A window bounds what a query
/// can see whatever the context, so that a mean over both kinds hides growth in the other.
/// @throws InvalidArgument  see usable_lengths()
std::vector<KindContext> context_by_attention(const runfile::RunReader& reader, const Options& options = {});
OrderedJson to_json(const Context& context);

}  // namespace gainlens::analyses
