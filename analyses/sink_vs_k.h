#pragma once

#include "analyses/options.h"
#include "analyses/selection.h"
#include "analyses/sink_inference.h"
#include "analyses/statistics.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// BOS masses above which heads are counted as sinks: the paper's, and the usual one of sink reports.
inline constexpr double sink_thresholds[] = {0.05, 0.3};

/// A gain that BOS mass is set against, and the queries it is averaged over.
struct GainVariant {
  std::string_view name;     ///< dataset under summary/
  std::string_view meaning;  ///< in words
};
inline constexpr std::array<GainVariant, 5> gain_variants = {{
    {"kalman_gain", "K, last quarter"},
    {"kalman_gain_half", "K, second half"},
    {"kalman_gain_scaled", "scaled K, last quarter"},
    {"kalman_gain_scaled_half", "scaled K, second half"},
    {"without_first_kalman_gain", "K without key 0, second half"},
}};

/// One head: means over complete chunks, then over lengths.
struct SinkPoint {
  std::size_t layer_position;  ///< on the run's layer axis
  std::int64_t layer;          ///< the model's own number
  std::int64_t head;
  std::string attention;                          ///< "global" or "window:N"
  bool set_apart;                                 ///< its window hides key 0, so that its BOS mass is 0 by construction
  double bos_mass;                                ///< mean over second-half queries; NaN where the run has none
  std::array<double, gain_variants.size()> gain;  ///< NaN where the run has none
};

/// BOS mass against one gain over heads.
struct SinkCorrelation {
  Correlation pooled;                                          ///< all heads but those set apart
  std::map<std::string, Correlation> within_attention_type;    ///< every kind of the run, those set apart too
  Correlation within_layers;                                   ///< layer means taken off; but those set apart
  std::vector<std::pair<std::int64_t, Correlation>> by_layer;  ///< the model's layer numbers; but those set apart
  std::size_t left_out;                                        ///< heads without one of the two numbers
  SinkInference inference;                                     ///< what stands beside the naive p; but those set apart
};

/// Heads whose BOS mass exceeds a threshold.
struct SinkHeads {
  double threshold;
  std::size_t heads;
  std::vector<std::int64_t> layers;  ///< ascending, without repeats
  Measured smallest_gain;            ///< of K over last-quarter queries
};

/// A layer kept out of the pooled figures.
struct LayerApart {
  std::int64_t layer;
  std::string attention;
  std::string reason;
};

/// Do heads that watch the first key have a gain near 1? One point per (layer, head). BOS mass and K are coupled by
/// arithmetic (a sink forces n_eff to 1 and S to 0, so K to 2d/(1+2d)): see without_first_kalman_gain.
struct SinkVsK {
  std::vector<Length> lengths;
  std::string lengths_rule;
  std::string bos_policy;
  bool bos;  ///< whether key 0 is a BOS token; otherwise it is the text's first token
  std::int64_t head_dim;
  std::vector<SinkPoint> points;  ///< layer by layer
  Measured bos_mass;              ///< mean over the heads that are not set apart; the reason where the run has none
  std::array<Maybe<SinkCorrelation>, gain_variants.size()> correlations;
  std::vector<SinkHeads> sinks;  ///< at each of sink_thresholds, of heads that are not set apart
  std::vector<std::int64_t> late_layers;
  Maybe<Interval> late_gain;  ///< smallest and largest K, last quarter, of the late (deep) layers' heads
  Measured late_bos_mass;     ///< largest of the late layers' heads that are not set apart
  std::vector<LayerApart> apart;
  std::vector<std::string> notes;  ///< what a reader has to know about these layers and chunks
  /// Share of (chunk, layer, head) whose column mean at key m exceeds 0.3 (Gu et al.). At each length without the
  /// layers whose window hides key 0 there: they hold no sink on it by construction.
  std::vector<Measured> sink_share;
  std::vector<std::vector<Measured>>
      sink_share_by_length;  ///< [length of `lengths`][key]; a longer context spreads a column mean thinner
};

/// Source: bft.tex, Fig. sink-vs-K; method.md, Sink against K.
/// @throws InvalidArgument  see sink_lengths() and deep_layers()
SinkVsK sink_vs_k(const runfile::RunReader& reader, const Options& options = {});
OrderedJson to_json(const SinkVsK& result);

}  // namespace gainlens::analyses
