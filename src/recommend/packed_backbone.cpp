#include "recommend/packed_backbone.h"

#include "core/check.h"
#include "models/all_finite.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

namespace gainlens::recommend {

PackedBackbone::PackedBackbone(const bft::Filter& filter, hooks::AttentionLayout layout)
    : filter_(filter), layout_(std::move(layout)) {}

void PackedBackbone::check_slots(const char* name, std::size_t given) {
  ASSERT(given == layout_.window.size(), "{}: {} layers of weights; the model has {}", name, given, layers());
  for (const WeightSlot& slot : slots()) {
    ASSERT(slot.tensor->defined() && slot.tensor->sizes() == at::IntArrayRef(slot.shape),
           "{}: '{}' does not have the shape that its configuration gives", name, slot.name);
  }
}

at::Tensor PackedBackbone::run(const PackedSequences& sequences, const RunOptions& options,
                               const hooks::Hooks& hooks) const {
  if (!hooks.empty()) check_packed_hooks(hooks, sites());
  const PackedPass pass = pass_over(sequences, hooks, options);
  LayerStream stream = first_stream(filter_, input_part(), sequences.items, sequences.places, layers(), pass);
  return finished(run_layers(std::move(stream), layers(), pass).hidden, pass);
}

LastStates PackedBackbone::last_states(const PackedSequences& sequences) const {
  const at::NoGradGuard no_gradients;
  const hooks::Hooks no_hooks;
  PackedPass pass = pass_over(sequences, no_hooks);
  LayerStream stream = first_stream(filter_, input_part(), sequences.items, sequences.places, layers(), pass);
  stream = run_layers(std::move(stream), layers() - 1, pass);
  // Others read keys and values of a position alone, and nobody those after the last layer.
  const at::Tensor rows = sequences.last_rows();
  const bool alone = serves_last_rows(stream);
  if (alone) pass.last_rows = rows;
  block(layers() - 1, stream, pass);
  if (!alone) {
    stream.hidden = query_rows(stream.hidden, rows);
    stream.filter.precision = query_rows(stream.filter.precision, rows);
  }
  return {finished(stream.hidden, pass), stream.filter.precision};
}

LayerStream PackedBackbone::run_layers(LayerStream stream, std::int64_t layers, const PackedPass& pass) const {
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    block(layer, stream, pass);
    if (pass.equal_lengths && !models::all_finite(stream.hidden))
      throw_run_failed("forward: NaN or infinity in the residual stream, first after layer {}", layer);
  }
  return stream;
}

void PackedBackbone::check_ids(const hooks::Tokens& tokens, const hooks::ForwardOptions& options,
                               const hooks::Hooks& hooks) const {
  const HistoryView seen = view();
  check_id_request(tokens, options, hooks,
                   {seen.positions, items(), seen.mask, layout_.heads, layers(),
                    input_part().item_embedding.scalar_type(), sites()});
}

hooks::Stream PackedBackbone::forward_ids(const hooks::Tokens& tokens, const hooks::ForwardOptions& options,
                                          const hooks::Hooks& hooks) {
  const std::int64_t batch = tokens.ids.size(0), positions = tokens.ids.size(1);
  const kernels::PackedBounds bounds = equal_bounds(batch, positions);
  const PackedPass pass{.hooks = hooks,
                        .bounds = bounds,
                        .batch = batch,
                        .positions = positions,
                        .equal_lengths = true,
                        .operation = options.attention,
                        .training = options.training,
                        .stretch_sums = options.stretch_sums};
  const HistoryView seen = view();
  const at::Tensor places = places_of(tokens.ids, seen.positions, seen.alignment);
  const bool whole = options.stop_at_layer < 0;
  at::Tensor hidden = run_layers(first_stream(filter_, input_part(), tokens.ids.flatten(), places, layers(), pass),
                                 whole ? layers() : options.stop_at_layer, pass)
                          .hidden;
  if (whole) hidden = finished(hidden, pass);
  hooks::Stream stream{hidden.view({batch, positions, hidden.size(1)})};
  if (whole && hooks.wants(hooks::logits_site())) hooks.at(hooks::logits_site(), unembed(stream.hidden));
  return stream;
}

std::vector<bft::FilterWeights*> PackedBackbone::layer_filter_weights() {
  std::vector<bft::FilterWeights*> filters;
  for (const LayerHandle& layer : layer_handles()) filters.push_back(layer.filter);
  return filters;
}

std::vector<models::NamedTensor> PackedBackbone::filter_constants() {
  return parameters_of(slots(), WeightRole::constant);
}

void PackedBackbone::refresh_jacobian() {
  std::vector<const LinearWeights*> up, down;
  for (const LayerHandle& layer : layer_handles()) {
    up.push_back(layer.up);
    down.push_back(layer.down);
  }
  factors_ = jacobian_factors(filter_, up, down);
}

}  // namespace gainlens::recommend
