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
  bool extrapolated;  ///< longer than the model's positions
  /// Why growth is not judged at this length, because something else than the context changes here; empty if it is.
  std::string set_apart;
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

/// The growth of the evidence from the shortest to the longest length at which it can be judged. A change of regime
/// looks like growth, so these lengths are set apart:
/// - A window is not full: the first query of the last quarter sees fewer keys than the window, because the chunk has
///   no more. Such queries see more keys in a longer chunk, and those of a full window do not. A window that is as long
///   as the longest chunk never binds, and its layers count as global.
/// - The length exceeds the model's positions.
struct Growth {
  std::size_t first = 0, last = 0;  ///< positions in Context::points; equal if fewer than two lengths are judged
  Measured precision_ratio;         ///< as in ContextPoint, from `first` to `last`
  Maybe<Interval> precision_ratio_interval;  ///< likewise
  Change log_precision;                      ///< likewise; missing, with the reason, if fewer than two are judged

  bool judged() const { return first != last; }
};

/// Does the gate follow the evidence? n_eff, gate and lambda_obs by context length, for the last-quarter queries of the
/// deep layers. The gate and the precision are compared on the same scale, as logit(gate) and ln lambda_obs, because
/// K = sigmoid(ln lambda_obs - ln lambda).
struct Context {
  std::vector<std::int64_t> deep_layers;  ///< the model's own numbers
  bool paired;                            ///< whether changes are paired by chunk, see is_paired()
  std::string sharing;                    ///< which text the lengths share, and how changes allow for it: sentences
  std::vector<ContextPoint> points;       ///< shortest first; the first is T_min
  Growth growth;
  double equivalence_margin;   ///< of logit(gate) and ln lambda_obs
  std::string margin_meaning;  ///< what this margin means, in words
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
/// query sees at any context length, so a mean over both kinds is true of neither: it hides growth in the layers
/// without a window, or takes a window that fills up for growth.
/// @throws InvalidArgument  see usable_lengths()
std::vector<KindContext> context_by_attention(const runfile::RunReader& reader, const Options& options = {});
/// The kind with the longest window: "global" where there is one. Requires at least one kind.
const KindContext& widest(const std::vector<KindContext>& kinds);

/// "256 (the window of 512 keys is not full) and 64k (...)": the lengths that are set apart, with the reason; empty if
/// there is none.
std::string set_apart_in_words(const Context& context);
/// "window:512 layers: 256 (the window of 512 keys is not full)": the same for each kind that has some.
std::string set_apart_in_words(const std::vector<KindContext>& kinds);
OrderedJson to_json(const Context& context);

}  // namespace gainlens::analyses
