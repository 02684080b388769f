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

namespace gainlens::recommend {

/// Where the norms of a layer stand.
enum class NormPlace {
  pre,   ///< before attention and MLP; one more after the last layer
  post,  ///< after each residual sum
};

/// What SASRec has in other programs and not here: such models are ranked, and not trained. Defaults: as here.
struct ForeignParts {
  enum class Activation { gelu, relu, silu };
  enum class Norm {
    none,
    last,     ///< one more after the last layer, behind norms after the sums
    queries,  ///< before the attention of queries alone, and before the MLP; both sums begin with what was normed. One
              ///< more after the last layer
  };
  enum class Padding {
    none,
    seen,    ///< in front of a short history, up to all positions: row 0 of both embeddings. Queries look at it
    zeroed,  ///< likewise, but its stream is set to 0 before every layer
  };
  Activation activation = Activation::gelu;  ///< of the MLP; gelu is the exact one
  Norm norm = Norm::none;
  Padding padding = Padding::none;
  bool operator==(const ForeignParts&) const = default;
};

/// The shape of a SASRec model (Kang and McAuley, 2018): a causal transformer over the items of a user. Or that of a
/// BERT4Rec model (Sun et al., 2019): the same transformer in both directions. Defaults: docs/recommend-training.md,
/// "SASRec".
struct SasRecConfig {
  /// BERT4Rec: attention in both directions, a token MASK (id items + 1), and a head of a dense layer, GELU, a norm and
  /// a bias for each item.
  bool bidirectional = false;
  std::int64_t items = 0;   ///< the catalogue: ids 1 to items
  std::int64_t width = 64;  ///< of the residual stream
  std::int64_t heads = 2;   ///< divides the width
  std::int64_t layers = 2;
  std::int64_t inner_width = 256;  ///< neurons of the MLP, with the exact GELU
  std::int64_t positions = 50;     ///< a longer sequence keeps its last items
  NormPlace norm = NormPlace::pre;
  EmbeddingFactor embedding_factor = EmbeddingFactor::one;
  double embedding_deviation = 0.02;  ///< of the embeddings of items and positions before training
  bool embedding_norm = false;        ///< a norm of item plus position
  double norm_epsilon = 1e-5;
  Alignment alignment = Alignment::end;
  double mask_probability = 0.2;  ///< of each item of a training history of BERT4Rec
  Arm arm = Arm::plain;
  bft::FilterOptions filter = {};  ///< read by the arms that have the parts it describes
  ForeignParts foreign = {};

  bft::Filter armed_filter() const { return {arm, filter}; }
  const ArmParts& parts() const { return parts_of(arm); }
  bool has_gain() const { return armed_filter().has_gain(); }
  std::int64_t ids() const { return items + (bidirectional ? 2 : 1); }  ///< of items, of MASK, and 0
  std::int64_t head_dim() const { return width / heads; }
  /// Whether a norm stands before attention and MLP, or at least before the queries.
  bool norm_before() const { return norm == NormPlace::pre || foreign.norm == ForeignParts::Norm::queries; }
  bool final_norm() const { return norm == NormPlace::pre || foreign.norm != ForeignParts::Norm::none; }
  bool operator==(const SasRecConfig&) const = default;
};

inline HistoryView view_of(const SasRecConfig& config) {
  using Padding = ForeignParts::Padding;
  HistoryView view{config.positions, config.alignment};
  // The position of padding that is seen is none of an item.
  if (config.foreign.padding != Padding::none)
    view.padded_to = config.positions - (config.foreign.padding == Padding::seen ? 1 : 0);
  if (!config.bidirectional) return view;
  view.mask = config.items + 1;
  view.mask_probability = config.mask_probability;
  return view;
}

/// @throws InvalidArgument  a number out of its range, heads that do not divide the width, options of the filter that
///     contradict each other or the rest
void check(const SasRecConfig& config, const std::string& where);

/// What can be chosen of such a model besides its arm and filter: a key of config.json each.
std::span<const Knob<SasRecConfig>> sasrec_knobs(bool bidirectional = false);
/// Its name as a backbone.
std::string sasrec_name(bool bidirectional);

/// The content of config.json.
OrderedJson to_json(const SasRecConfig& config);
/// @param where  names the document in messages
/// @throws InvalidArgument  a key is missing, unknown, of the wrong type or out of range
SasRecConfig parse_sasrec_config(const Json& document, const std::string& where, bool bidirectional = false);

}  // namespace gainlens::recommend
