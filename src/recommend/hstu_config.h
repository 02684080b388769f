#pragma once

#include "bft/filter_options.h"
#include "core/json.h"
#include "core/knobs.h"
#include "recommend/arm.h"
#include "recommend/history_view.h"
#include "recommend/model_shape.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gainlens::recommend {

/// Where the precision of a key and the recency decay enter its weight.
enum class PrecisionPlace {
  presilu,         ///< their logs are added to the score
  multiplicative,  ///< they multiply the weight
};

/// What the head is applied to.
enum class HstuOutput {
  norm,  ///< the stream after a last norm; a score is a dot product with an item's embedding
  unit,  ///< the stream and the embeddings as unit vectors; a score is their cosine over a temperature
};

/// What the dot product of a query and a key is divided by.
enum class ScoreScale { root, one };

/// The shape of an HSTU model (Zhai et al., 2024), as docs/recommend-training.md, "HSTU", describes it.
struct HstuConfig {
  std::int64_t items = 0;   ///< the catalogue: ids 1 to items
  std::int64_t width = 64;  ///< of the residual stream
  std::int64_t heads = 2;   ///< divides the width
  std::int64_t layers = 2;
  std::int64_t inner_width = 256;  ///< neurons of the MLP, in arms that have one
  std::int64_t positions =
      50;  ///< a longer history keeps its last items; n, the divisor of the weights, follows from it
  EmbeddingFactor embedding_factor = EmbeddingFactor::one;
  double embedding_deviation = 0.02;  ///< of the embeddings of items and positions before training
  bool embedding_norm = false;        ///< a norm of item plus position
  double norm_epsilon = 1e-5;
  Alignment alignment = Alignment::end;
  bool time_bias = true;          ///< scores depend on the time between two interactions
  std::int64_t extra_length = 0;  ///< n is `positions` and this
  ScoreScale score_scale = ScoreScale::root;
  bool attention_norm_weights = true;  ///< the norms before attention and of what it gives have weights and biases
  double projection_deviation = 0.02;  ///< of W_O before training
  HstuOutput output = HstuOutput::norm;
  double temperature = 0.05;  ///< of `unit`
  PrecisionPlace precision_place = PrecisionPlace::presilu;
  Arm arm = Arm::plain;
  bft::FilterOptions filter = {};  ///< read by the arms that have the parts it describes

  bft::Filter armed_filter() const { return {arm, filter}; }
  bool has_gain() const { return armed_filter().has_gain(); }
  /// Whether a layer has an MLP. The backbone has none; a filter predicts with it, and its controls have what it has.
  bool has_mlp() const { return arm == Arm::ffn || armed_filter().parts().factor != bft::AttentionFactor::one; }
  std::int64_t ids() const { return items + 1; }  ///< of items, and 0
  std::int64_t head_dim() const { return width / heads; }
  std::int64_t length() const { return positions + extra_length; }  ///< n
  bool operator==(const HstuConfig&) const = default;
};

inline constexpr std::string_view hstu_name = "hstu";

/// Number of time buckets. Source: generative-recommenders, research/modeling/sequential/hstu.py.
inline constexpr std::int64_t hstu_time_buckets = 129;

/// What differs from the defaults of the settings: the paper caps the dropout of this backbone at .2, its weights have
/// a variance by the sandwich alone, and the gain acts before W_O.
Json hstu_defaults();
/// What the published research code does, as far as it is built: docs/recommend-training.md, "HSTU". Source:
/// generative-recommenders, 2e81fab, configs/ml-1m/hstu-sampled-softmax-n128-final.gin; W_O by Xavier at width 64.
Json hstu_reference_settings();
/// The most dropout that the paper gives this backbone.
inline constexpr double hstu_most_dropout = 0.2;

inline HistoryView view_of(const HstuConfig& config) {
  return {config.positions, config.alignment, config.time_bias};
}

/// @throws InvalidArgument  a number out of its range, an arm or an option of the filter that weights of both signs do
///     not have, options that contradict each other
void check(const HstuConfig& config, const std::string& where);
/// Why a key changes nothing in a model of the configuration's arm; empty: it acts, or is no key of this backbone.
std::string why_idle(const HstuConfig& config, std::string_view key);

/// What can be chosen of such a model besides its arm and filter: a key of config.json each.
std::span<const Knob<HstuConfig>> hstu_knobs();

/// The content of config.json.
OrderedJson to_json(const HstuConfig& config);
/// @param where  names the document in messages
/// @throws InvalidArgument  a key is missing, unknown, of the wrong type or out of range
HstuConfig parse_hstu_config(const Json& document, const std::string& where);

}  // namespace gainlens::recommend
