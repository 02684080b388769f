#pragma once

#include "bft/feedforward_jacobian.h"
#include "recommend/layer_weights.h"
#include "recommend/packed_pass.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

// Parts of a layer that several backbones have: what enters the first layer, norms, and an MLP whose Jacobian moves the
// precision of a filter.

namespace gainlens::recommend {

inline const hooks::Site embed_site{"hook_embed"}, position_site{"hook_pos_embed"},
    final_norm_site{"ln_final.hook_normalized"};

/// What goes from layer to layer.
struct LayerStream {
  at::Tensor hidden;  ///< [row, width]
  bft::FilterState filter = {};
  at::Tensor items = {};  ///< [row, 1]: 1 for items and 0 for padding, where the model sets padding to 0
};

at::Tensor linear(const at::Tensor& input, const LinearWeights& weights);

/// A layer norm of each row.
/// @param site  shows the rows before the norm's weight and bias
at::Tensor normed(const at::Tensor& x, const NormWeights& weights, double epsilon, const hooks::Site& site,
                  const PackedPass& pass);

/// What the first layer reads: the embedding of the item times a factor, plus that of its place.
struct InputPart {
  const at::Tensor &item_embedding, &position_embedding;
  double factor;
  const NormWeights* norm;  ///< of the sum; null: none
  double norm_epsilon;
  const bft::InitialPrecisionWeights& precision;
  bool zero_padding = false;  ///< rows of padding are set to 0
};
/// @param layers  number of layers of the model
LayerStream first_stream(const bft::Filter& filter, const InputPart& part, const at::Tensor& items,
                         const at::Tensor& places, std::int64_t layers, const PackedPass& pass);

/// The MLP of a layer, down(activation(up(x))).
struct MlpPart {
  std::int64_t layer;
  bool last;                    ///< of the model: no one reads the precision after it
  const NormWeights* norm;      ///< before the MLP; null: it reads the stream itself
  const NormWeights& own_norm;  ///< of whatever place: `norm_jacobian` reads its weight
  double norm_epsilon;
  const LinearWeights &up, &down;
  kernels::Activation activation = kernels::Activation::gelu_erf;  ///< this one, where a filter reads its slopes
  const bft::FilterWeights& filter;
  const bft::JacobianFactors* factors;  ///< of the low-rank form; null for others
};
/// What the MLP gives, before dropout. Predicts the precision of the stream, which the next layer reads.
/// @param stream  its `hidden` is what the MLP reads, before the norm
at::Tensor fed_forward(const bft::Filter& filter, const MlpPart& part, std::int64_t heads, LayerStream& stream,
                       const PackedPass& pass);

/// The factors of the Jacobian of an MLP, without gradients, where the filter takes their low-rank form.
/// @param up, down  [layer]
std::vector<bft::JacobianFactors> jacobian_factors(const bft::Filter& filter,
                                                   const std::vector<const LinearWeights*>& up,
                                                   const std::vector<const LinearWeights*>& down);

/// [layer] share of the squared singular values that the factors keep.
std::vector<double> kept_energy(const std::vector<bft::JacobianFactors>& factors);

/// Scores of ids, [.., id], from the stream after the last norm. Those of 0, and of ids after the items, are -infinity.
/// @param embedding  [id, width]
/// @param bias       [item]; undefined: none
at::Tensor id_scores(const at::Tensor& normalized, const at::Tensor& embedding, std::int64_t items,
                     const at::Tensor& bias = {});

/// Refuses hooks that packed histories cannot serve: logits, and patterns, which have no shape there.
/// @throws InvalidArgument  names the site
void check_packed_hooks(const hooks::Hooks& hooks, const std::vector<hooks::SiteShape>& sites);

/// What a model says of the ids that it reads, for check_id_request().
struct IdReader {
  std::int64_t positions, items;
  std::int64_t mask;  ///< 0: none
  std::int64_t heads, layers;
  at::ScalarType dtype;
  std::vector<hooks::SiteShape> sites;
};
/// @throws InvalidArgument  ids that are no items, more positions than the model has, a layer that does not exist,
/// hooks
///     that cannot be served
void check_id_request(const hooks::Tokens& tokens, const hooks::ForwardOptions& options, const hooks::Hooks& hooks,
                      const IdReader& model);
/// int64 [batch * position]: the places of sequences of one length.
at::Tensor places_of(const at::Tensor& ids, std::int64_t positions, Alignment alignment);

/// Bounds of a batch of sequences of one length.
kernels::PackedBounds equal_bounds(std::int64_t batch, std::int64_t positions);

}  // namespace gainlens::recommend
