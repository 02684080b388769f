#pragma once

#include "bft/filter_weights.h"
#include "bft/fused_step.h"
#include "hooks/hooks.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

// The filter of a model while it runs, layer by layer. Rows are positions, of packed histories or of a batch of texts.
// A layer asks its host for two things: attention with moments, and the diagonal of the Jacobian of the MLP.

namespace gainlens::bft {

/// What a filter does with the precisions that it computes.
enum class FilterMode {
  act,     ///< they enter the scores, and K acts on what attention gives
  follow,  ///< they go along, and change nothing: the precision of the stream of a frozen model
};

/// Names of the sites of a filter, after "blocks.{layer}.".
inline constexpr std::string_view precision_site = "hook_precision",
                                  observation_site = "attn.hook_observation_precision", gain_site = "attn.hook_gain",
                                  stretch_site = "mlp.hook_stretch";

/// Refuses an intervention on a filter that is not in force: it would change nothing.
/// @param layers  number of layers
/// @throws InvalidArgument  names the site
void refuse_idle_interventions(const Filter& filter, const hooks::Hooks& hooks, std::int64_t layers);

/// Where a layer of the filter shows what it computes: at the sites above.
class FilterSites {
 public:
  virtual ~FilterSites() = default;
  /// @param rows  [row, width], or [row, head, head_dim]
  /// @returns     what the layer continues with, of the same shape
  virtual at::Tensor at(std::string_view site, const at::Tensor& rows) const = 0;
  virtual bool wants(std::string_view site) const = 0;
  /// Whether an intervention is attached to the site.
  virtual bool replaces(std::string_view site) const = 0;
};

/// Precisions of another space: as they are where both have one size, else their mean over the dimensions, one number
/// for each row. The stream and the heads of a model may differ in size; then no dimension of one is one of the other.
/// @param precision  [row, dimension]
/// @returns          [row, size], or [row, 1]
at::Tensor precision_in(const at::Tensor& precision, std::int64_t size);

/// What attention finds of a row: a value of each head.
struct HeadSizes {
  std::int64_t count = 1;
  std::int64_t head_dim = 1;
};

/// What goes from layer to layer.
struct FilterState {
  at::Tensor precision = {};  ///< [row, width] lambda, float32 or wider; undefined: no precision follows the stream
  PriorPrecision prior = {};  ///< of each row, for layers that begin anew; else undefined
  at::Tensor key_bias = {};   ///< [row] of arms whose precision does not move; else undefined
  double strength = 1;        ///< share of the filter that is in force
  FilterMode mode = FilterMode::act;
  /// [row, width] what the update of this layer takes away from the stream, K h of the textbook; undefined: nothing. It
  /// is no part of what attention found: neither W_O nor dropout acts on it.
  at::Tensor removed = {};
  bool fused = false;  ///< takes the fused steps where they exist: their bits are not those of the separate steps
  /// [layer] sums of the stretch over rows [width], without gradients; null: nobody wants them.
  std::vector<at::Tensor>* stretch_sums = nullptr;
};

/// The state before the first layer.
/// @param prior    of each row; its parts are undefined for arms without precisions
/// @param range    [1] tau_range of the first layer; undefined for kinds of tau that have none
/// @param strength the share of the filter that is in force; at 0 the model is the plain one
FilterState first_state(const Filter& filter, const PriorPrecision& prior, const at::Tensor& range, double strength,
                        std::int64_t width);

/// What the scores of attention get besides q k.
struct ScoreBiases {
  at::Tensor key;        ///< [row] added to every score of the key; undefined: nothing
  at::Tensor log_decay;  ///< [1] or [head] added as many times as query and key are places apart; undefined: nothing
};

/// The filter of one layer in a pass. The arguments must exist as long as this object.
///
/// The stream has `width` dimensions, attention finds heads x head_dim. The gain acts on an estimate of either size: on
/// what the heads found, or on what the stream gets of it (GainPlace). Precisions go from one to the other as
/// precision_in() says.
class FilterPass {
 public:
  FilterPass(const Filter& filter, const FilterWeights& weights, const FilterSites& sites, FilterState& state,
             const HeadSizes& heads)
      : filter_(filter), weights_(weights), sites_(sites), state_(state), heads_(heads) {}

  /// Shows the precision that enters the layer. To be called first.
  void begin();
  /// The biases of this layer, as far as they act. Source: the paper, eq. (2) [eq:kriging] and eq. (7).
  ScoreBiases score_biases() const;

  /// Observes and updates, from the moments of the attention weights. Source: eq. (3) [eq:update].
  /// @param observed  its estimate is that of the heads, or of the stream
  /// @param hidden    [row, width] h, the stream that enters the layer; undefined: for updates that do not read it
  /// @returns  [row, dimension]: factor e. The state holds what the stream loses
  at::Tensor update(const ObservedMoments& observed, const at::Tensor& hidden);
  /// Likewise, from a precision that an estimator gave.
  /// @param estimate               [row, dimension] e, of the heads or of the stream
  /// @param observation_precision  [row, head, head_dim]
  at::Tensor update(const at::Tensor& estimate, const at::Tensor& observation_precision, const at::Tensor& hidden);
  /// factor e of a layer whose gain no precision moves: 1, of a gate, or a constant.
  /// @param estimate  [row, dimension] e
  /// @param input     [row, width] what attention reads; a gate reads it too
  at::Tensor scaled(const at::Tensor& estimate, const at::Tensor& input) const;

  /// The precision after the MLP. Source: eq. (8) and (9).
  /// @param jacobian  [row, width] J of this pass; undefined: the running mean of the stretch is taken, or 1
  void predict(const at::Tensor& jacobian);

 private:
  at::Tensor observation_precision_of(const ObservedMoments& observed) const;
  at::Tensor by_heads(const at::Tensor& rows) const { return rows.view({rows.size(0), heads_.count, heads_.head_dim}); }
  at::Tensor shown_gain(const at::Tensor& gain) const;
  bool takes_fused_update(const ObservedMoments& observed) const;

  const Filter& filter_;
  const FilterWeights& weights_;
  const FilterSites& sites_;
  FilterState& state_;
  HeadSizes heads_;
};

}  // namespace gainlens::bft
