#pragma once

#include "analyses/cells.h"
#include "analyses/equivalence.h"
#include "analyses/options.h"
#include "analyses/shared_text.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// A mean over chunks minus the mean at the shortest length, with its interval. difference_of_means() says how text
/// that the two lengths share is counted.
struct Change {
  Measured mean;
  Maybe<Interval> interval;
  std::string basis;  ///< data behind the interval: "5 paired chunks", ...; empty if the mean is missing
  Equivalence flat;   ///< is the difference 0 within the margin? Unknown at T_min, where it is 0 by definition
};

/// One context length of the context figure.
struct ContextPoint {
  Length length;
  Maybe<Aggregate> n_eff;
  Maybe<Aggregate> gate;                     ///< sigmoid of the gate's score, in (0, 1)
  Maybe<Aggregate> observation_precision;    ///< mean of lambda_obs over queries; not the lambda* of gain_theory()
  Measured precision_ratio;                  ///< lambda_obs(T) / lambda_obs(T_min), of the aggregated means
  Measured precision_ratio_deviation;        ///< standard deviation of lambda_obs(T) / lambda_obs(T_min)
  Maybe<Interval> precision_ratio_interval;  ///< Student interval of the logarithm of this ratio of means; [1, 1] at
                                             ///< T_min. log_precision is another number: a mean of logarithms

  Change logit_gate;     ///< change of logit(chunk mean of the gate) since T_min
  Change log_precision;  ///< change of ln(chunk mean of lambda_obs) since T_min
  Change difference;     ///< logit_gate - log_precision, chunk by chunk
};

/// Does the gate follow the evidence? n_eff, gate and lambda_obs by context length, for the last-quarter queries of the
/// deep layers. The gate and the precision are compared on the same scale, as logit(gate) and ln lambda_obs, because
/// K = sigmoid(ln lambda_obs - ln lambda).
struct Context {
  std::vector<std::int64_t> deep_layers;  ///< the model's own numbers
  bool paired;                            ///< whether changes are paired by chunk, see is_paired()
  std::string sharing;                    ///< which text the lengths share, and how changes allow for it: sentences
  std::vector<ContextPoint> points;       ///< shortest first; the first is T_min
  double equivalence_margin;              ///< of logit(gate) and ln lambda_obs
  std::string margin_meaning;             ///< what this margin means, in words
};

/// Source: bft.tex, Fig. gate-frozen; docs/method.md, "Context figure".
/// @throws InvalidArgument  see deep_layers() and usable_lengths()
Context context(const runfile::RunReader& reader, const Options& options = {});

/// The same over all layers of one kind of attention.
struct KindContext {
  std::string attention;  ///< "global" or "window:512"
  Context context;        ///< `deep_layers` holds all layers of this kind
};

/// One per kind of attention, in the order of the layers; empty if all layers are of one kind. A window limits what a
/// query sees at any context length, so a mean over both kinds would hide growth in the layers without a window.
/// @throws InvalidArgument  see usable_lengths()
std::vector<KindContext> context_by_attention(const runfile::RunReader& reader, const Options& options = {});
OrderedJson to_json(const Context& context);

}  // namespace gainlens::analyses
