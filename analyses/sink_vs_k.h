#pragma once

#include "analyses/options.h"
#include "analyses/published_sinks.h"
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

/// BOS masses above which heads count as sinks: the paper's threshold, and the one usual in reports on sinks.
inline constexpr double sink_thresholds[] = {0.05, 0.3};

/// A gain that is compared with BOS mass, and the queries of its mean.
struct GainVariant {
  std::string_view name;     ///< dataset under summary/
  std::string_view meaning;  ///< in words
};
inline constexpr std::array<GainVariant, 6> gain_variants = {{
    {"kalman_gain", "K, last quarter"},
    {"kalman_gain_half", "K, second half"},
    {"kalman_gain_scaled", "scaled K, last quarter"},
    {"kalman_gain_scaled_half", "scaled K, second half"},
    {"without_first_kalman_gain", "K without key 0, second half"},
    {"without_sinks_kalman_gain", "K without all sinks, second half"},
}};

/// One head: means over complete chunks, then over lengths.
struct SinkPoint {
  std::size_t layer_position;  ///< on the run's layer axis
  std::int64_t layer;          ///< the model's own number
  std::int64_t head;
  std::string attention;  ///< "global" or "window:N"
  bool set_apart;         ///< key 0 is outside its window, so its BOS mass is 0; excluded from pooled figures
  double bos_mass;        ///< mean over second-half queries; NaN if missing
  /// Total sink mass: of every key with a column mean of at least column_mean_threshold (sink_keys.h), over the same
  /// queries. NaN if missing, or if no key can be a sink of this layer.
  double total_mass;
  std::array<double, gain_variants.size()> gain;  ///< NaN if missing
};

/// A mass of sinks against one gain over heads. With total sink mass no layer is set apart: a layer whose window hides
/// key 0 may have sinks at other keys.
struct SinkCorrelation {
  Correlation pooled;                                          ///< all heads, except in layers set apart
  std::map<std::string, Correlation> within_attention_type;    ///< by kind of attention; includes layers set apart
  Correlation within_layers;                                   ///< layer means subtracted; except layers set apart
  std::vector<std::pair<std::int64_t, Correlation>> by_layer;  ///< by the model's layer number; except layers set apart
  std::size_t left_out;                                        ///< number of heads without one of the two numbers
  SinkInference inference;                                     ///< beside the naive p; except layers set apart
};

/// Heads whose BOS mass exceeds a threshold.
struct SinkHeads {
  double threshold;
  std::size_t heads;
  std::vector<std::int64_t> layers;  ///< ascending, without repeats
  Measured smallest_gain;            ///< of K over last-quarter queries
};

/// A layer excluded from the pooled figures.
struct LayerApart {
  std::int64_t layer;
  std::string attention;
  std::string reason;
};

/// Do heads that attend to the first key have a gain near 1? One point per (layer, head). BOS mass and K are coupled by
/// arithmetic: a sink forces n_eff to 1 and S to 0, so K to 2d/(1+2d). Therefore see without_first_kalman_gain too.
struct SinkVsK {
  std::vector<Length> lengths;
  std::string lengths_rule;
  std::string bos_policy;
  bool bos;  ///< whether key 0 is a BOS token; otherwise it is the text's first token
  std::int64_t head_dim;
  std::vector<SinkPoint> points;  ///< layer by layer
  Measured bos_mass;              ///< mean over the heads that are not set apart
  std::array<Maybe<SinkCorrelation>, gain_variants.size()> correlations;        ///< with BOS mass
  std::array<Maybe<SinkCorrelation>, gain_variants.size()> total_correlations;  ///< with total sink mass
  /// Whether total sink mass counts keys 0 to 7 alone, because the run stores no others.
  bool first_keys_only;
  Measured total_mass;           ///< mean over the heads that have a total sink mass
  std::vector<SinkHeads> sinks;  ///< for each of sink_thresholds, over heads that are not set apart
  std::vector<std::int64_t> late_layers;
  Maybe<Interval> late_gain;  ///< smallest and largest K, last quarter, of the late (deep) layers' heads
  Measured late_bos_mass;     ///< largest over heads of the late layers that are not set apart
  std::vector<LayerApart> apart;
  std::vector<std::string> notes;  ///< what a reader must know about these layers and chunks
  /// [key m] Share of (chunk, layer, head) whose column mean at key m exceeds 0.3 (Gu et al.). Layers with key 0
  /// outside their window at a length are excluded there: they cannot have a sink on it.
  std::vector<Measured> sink_share;
  SinkCount sinks_on_key_0;  ///< what sink_share[0] counts
  std::vector<std::vector<Measured>>
      sink_share_by_length;  ///< [length of `lengths`][key]; column means shrink with longer contexts
};

/// Source: bft.tex, Fig. sink-vs-K; docs/method.md, "Sink against K".
/// @throws InvalidArgument  see sink_lengths() and deep_layers()
SinkVsK sink_vs_k(const runfile::RunReader& reader, const Options& options = {});
/// Why this run decides nothing about sinks: no head has a BOS mass above the smaller of sink_thresholds. Empty if some
/// head has, or if no head has a BOS mass at all. Heads that are set apart do not count.
std::string no_sink(const SinkVsK& sinks);
OrderedJson to_json(const SinkVsK& result);

}  // namespace gainlens::analyses
