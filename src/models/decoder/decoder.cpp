#include "models/decoder/decoder.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/quantity.h"
#include "kernels/gradient/tied_table.h"
#include "kernels/gradient/trained_loss.h"
#include "kernels/gradient_tracking.h"
#include "models/all_finite.h"
#include "models/decoder/alibi.h"
#include "models/decoder/attention_layout.h"
#include "models/decoder/attention_ops.h"
#include "models/decoder/cached_attention.h"
#include "models/decoder/convolution_layer.h"
#include "models/decoder/decoder_pass.h"
#include "models/decoder/decoder_shapes.h"
#include "models/decoder/decoder_sites.h"
#include "models/decoder/delta_layer.h"
#include "models/decoder/feedforward.h"
#include "models/decoder/norm.h"
#include "models/decoder/rope.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace gainlens::models {
namespace {

const hooks::Site embed_site{"hook_embed"};
const hooks::Site position_site{"hook_pos_embed"};
const hooks::Site final_norm_site{"ln_final.hook_normalized"};

constexpr double latent_norm_epsilon = 1e-6;  // the reference's, whatever rms_norm_eps is

/// Runs the operation. Adds the layer to the message if it fails.
at::Tensor attend(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options,
                  hooks::AttentionOp& operation) {
  try {
    return operation.run(layer, qkv, options);
  } catch (const RunFailed& error) {
    throw_run_failed("layer {}: {}", layer, error.what());
  }
}

/// Checks the residual stream after a layer: that every number is finite, and that the next norm can square it.
void check_stream(const at::Tensor& hidden, std::int64_t layer) {
  const double limit = largest_normalised(hidden);
  if (std::isinf(limit) && all_finite(hidden)) return;
  const at::Tensor largest = hidden.detach().abs().amax(-1);  // [sequence, position]; NaN if one is
  const at::Tensor places = largest.le(limit).logical_and(at::isfinite(largest)).logical_not().nonzero();
  if (places.size(0) == 0) return;
  const auto sequence = places[0][0].item<std::int64_t>(), position = places[0][1].item<std::int64_t>();
  const double found = largest[sequence][position].item<double>();
  if (std::isfinite(found)) {
    throw_run_failed(
        "forward: {:.3g} in the residual stream, first after layer {} at position {}; its square overflows{}", found,
        layer, position, hidden.scalar_type() == at::kDouble ? "" : "; use --dtype float64");
  }
  throw_run_failed(
      "forward: NaN or infinity in the residual stream, first after layer {} at position {}; a wider --dtype may hold "
      "it",
      layer, position);
}

}  // namespace

void check_ids(const at::Tensor& ids, std::int64_t vocabulary) {
  CHECK(ids.defined() && ids.dim() == 2 && ids.scalar_type() == at::kLong,
        "tokens: ids must be int64 [batch, position]");
  CHECK(ids.numel() > 0, "tokens: the batch has no ids; a forward pass needs at least one position");
  const at::Tensor outside = (ids < 0).logical_or(ids >= vocabulary);
  if (!outside.any().item<bool>()) return;
  const at::Tensor first = outside.nonzero()[0];  // [sequence, position]
  const auto sequence = first[0].item<std::int64_t>(), position = first[1].item<std::int64_t>();
  throw_invalid("tokens: id {} at position {} of sequence {}; the vocabulary has {} ids, 0 to {}",
                ids[sequence][position].item<std::int64_t>(), position, sequence, vocabulary, vocabulary - 1);
}

Decoder::Decoder(DecoderConfig config, DecoderWeights weights, WeightUse use)
    : Decoder(std::move(config), std::move(weights), use, nullptr) {}

Decoder::Decoder(DecoderConfig config, DecoderWeights outer, std::unique_ptr<LayerSource> source)
    : Decoder(std::move(config), std::move(outer), WeightUse::frozen, std::move(source)) {
  ASSERT(source_ != nullptr, "decoder: no source of layers");
}

Decoder::Decoder(DecoderConfig config, DecoderWeights weights, WeightUse use, std::unique_ptr<LayerSource> source)
    : config_(std::move(config)),
      filter_(config_.armed_filter()),
      weights_(std::move(weights)),
      source_(std::move(source)),
      layout_(attention_layout(config_)) {
  check_outer_shapes(config_, weights_);
  like_ = weights_.embedding.options().requires_grad(false);
  std::vector<LayerWeights> layers = std::exchange(weights_.layers, {});
  runnable_layers_ = source_ == nullptr ? std::ssize(layers) : config_.layers;
  // A frozen model may have its first layers alone.
  const std::int64_t least = source_ != nullptr ? 0 : use == WeightUse::frozen ? 1 : config_.layers;
  const std::int64_t most = source_ != nullptr ? 0 : config_.layers;
  ASSERT(least <= std::ssize(layers) && std::ssize(layers) <= most, "decoder weights: {} layers; the model has {}",
         layers.size(), config_.layers);
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    check_layer_shapes(config_, static_cast<std::int64_t>(layer), layers[layer], weights_.embedding.scalar_type());
  if (config_.positions == Positions::rotary) {
    for (std::int64_t layer = 0; layer < config_.layers; ++layer)
      rope_frequencies(config_.rope_of(layer), config_.rotary_dim(), 1);
  }
  if (use == WeightUse::frozen) {
    // If the head is tied, the packed head is the embedding too: memory holds it once.
    if (config_.tied_head) weights_.embedding = at::Tensor();
    head_ = Projection(std::exchange(weights_.head, at::Tensor()), weights_.head_bias, use);
  } else {
    if (config_.tied_head && weights_.embedding.requires_grad())
      std::tie(weights_.embedding, weights_.head) = kernels::tied_table(weights_.embedding);
    head_ = Projection(weights_.head, weights_.head_bias, use);
  }
  for (LayerWeights& layer : layers) layers_.push_back(make_layer(std::exchange(layer, {}), use));
  if (config_.filter) start_filter(use);
}

auto Decoder::make_layer(LayerWeights weights, WeightUse use) -> Layer {
  LayerProjections projections(weights, use);
  return {std::move(projections), std::move(weights)};
}

Decoder::~Decoder() = default;

hooks::Stream Decoder::forward(const hooks::Tokens& tokens, const hooks::ForwardOptions& options,
                               const hooks::Hooks& hooks) {
  const hooks::ForwardRequest request{&tokens, options, &hooks};
  return std::move(forward_all({&request, 1}).front());
}

std::vector<hooks::Stream> Decoder::forward_all(std::span<const hooks::ForwardRequest> requests) {
  UsualAttention fused;  // for requests that bring no operation
  std::vector<Pass> passes;
  for (const hooks::ForwardRequest& request : requests) check_request(request);
  for (const hooks::ForwardRequest& request : requests) {
    passes.push_back(prepared(request, fused));
    passes.back().hidden = first_stream(passes.back());
  }
  return run_layers(std::move(passes), 0);
}

std::vector<hooks::Stream> Decoder::forward_from(std::int64_t layer, const at::Tensor& hidden,
                                                 std::span<const hooks::ForwardRequest> requests) {
  ASSERT(filter_.arm == bft::Arm::plain, "forward_from: a filter's precision is not in the stream");
  ASSERT(0 <= layer && layer <= config_.layers, "forward_from: layer {} of {}", layer, config_.layers);
  UsualAttention fused;
  std::vector<Pass> passes;
  for (const hooks::ForwardRequest& request : requests) {
    check_request(request);
    const at::Tensor& ids = request.tokens->ids;
    ASSERT(hidden.dim() == 3 && hidden.size(0) == ids.size(0) && hidden.size(1) == ids.size(1) &&
               hidden.size(2) == config_.width,
           "forward_from: the stream does not fit the tokens");
    passes.push_back(prepared(request, fused));
    passes.back().hidden = hidden.to(like_.device());
  }
  return run_layers(std::move(passes), layer);
}

/// Runs the layers from `first` on, each for all passes before the next layer begins.
std::vector<hooks::Stream> Decoder::run_layers(std::vector<Pass> passes, std::int64_t first) {
  std::int64_t last = 0;
  for (const Pass& pass : passes) last = std::max(last, last_layer(pass.request.options));
  for (std::int64_t layer = first; layer < last; ++layer) {
    Layer loaded;
    if (source_ != nullptr) {
      LayerWeights read = source_->load(layer);
      check_layer_shapes(config_, layer, read, like_.dtype().toScalarType());
      loaded = make_layer(std::move(read), WeightUse::frozen);
    }
    const Layer& weights = source_ != nullptr ? loaded : layers_[static_cast<std::size_t>(layer)];
    for (Pass& pass : passes) {
      if (layer >= last_layer(pass.request.options)) continue;
      if (pass.recomputed != nullptr) {
        recomputed_block(weights, layer, pass);
      } else {
        pass.hidden = block(weights, layer, std::move(pass.hidden), pass);
      }
      check_stream(pass.hidden, layer);
    }
  }
  std::vector<hooks::Stream> streams;
  streams.reserve(passes.size());
  for (Pass& pass : passes) streams.push_back(finish(pass));
  return streams;
}

at::Tensor Decoder::extend(std::span<const Extension> extensions, bool allow_extrapolation, const SeeLastQuery& see) {
  ASSERT(!extensions.empty(), "extend: no sequence");
  ASSERT(followed_.empty(), "extend: the decoder follows a filter that it does not have");
  std::vector<CachedSegment> segments;
  std::vector<PositionRange> ranges;
  std::vector<std::vector<std::int64_t>> added;
  std::vector<std::int64_t> ids, last_rows;
  for (const Extension& extension : extensions) {
    ASSERT(extension.cache != nullptr && !extension.ids.empty(), "extend: a sequence without cache or new tokens");
    KeyValueCache& cache = *extension.cache;
    std::vector<std::int64_t> fresh(extension.ids.begin(), extension.ids.end());
    check_positions(cache.length() + std::ssize(fresh), allow_extrapolation);
    if (begins_anew(cache.length(), cache.length() + std::ssize(fresh))) {
      fresh.insert(fresh.begin(), cache.ids().begin(), cache.ids().end());
      cache.clear();
    }
    segments.push_back({&cache, std::ssize(ids), std::ssize(fresh)});
    ranges.push_back({cache.length(), std::ssize(fresh)});
    ids.insert(ids.end(), fresh.begin(), fresh.end());
    last_rows.push_back(std::ssize(ids) - 1);
    added.push_back(std::move(fresh));
  }
  const hooks::Tokens tokens{at::tensor(ids, at::kLong).unsqueeze(0)};
  check_ids(tokens.ids, config_.vocabulary);
  const hooks::Hooks none;
  const hooks::ForwardRequest request{&tokens, {}, &none};
  CachedAttention attention(segments, see);
  std::vector<Pass> passes;
  passes.push_back({.request = request, .hooks = none, .attention = attention, .segments = segments});
  place(passes[0], std::move(ranges));
  passes[0].hidden = first_stream(passes[0]);
  const hooks::Stream stream = std::move(run_layers(std::move(passes), 0).front());
  for (std::size_t i = 0; i < segments.size(); ++i) segments[i].cache->add(added[i]);
  return stream.hidden[0].index_select(0, at::tensor(last_rows, at::kLong).to(like_.device()));
}

/// Whether positions that were computed in a sequence of `before` have other rotations in one of `positions`.
bool Decoder::begins_anew(std::int64_t before, std::int64_t positions) const {
  if (before == 0 || config_.positions != Positions::rotary) return false;
  const auto changes = [&](const RopeConfig& rope) {
    const RopeFrequencies a = rope_frequencies(rope, config_.rotary_dim(), before),
                          b = rope_frequencies(rope, config_.rotary_dim(), positions);
    return a.inverse != b.inverse || a.attention_factor != b.attention_factor;
  };
  return changes(config_.rope) || (config_.window_rope && changes(*config_.window_rope));
}

/// A pass that has what every layer reads, and no stream yet.
Decoder::Pass Decoder::prepared(const hooks::ForwardRequest& request, hooks::AttentionOp& fused) const {
  hooks::AttentionOp* const asked = request.options.attention;
  Pass pass{.request = request, .hooks = *request.hooks, .attention = asked != nullptr ? *asked : fused};
  place(pass, {{0, request.tokens->ids.size(1)}});
  return pass;
}

/// Gives the pass what depends on the positions of its rows.
void Decoder::place(Pass& pass, std::vector<PositionRange> ranges) const {
  std::int64_t longest = 0;
  for (const PositionRange& range : ranges) longest = std::max(longest, range.end());
  if (config_.positions == Positions::rotary) {
    pass.ropes.push_back(rotations(config_.rope, ranges));
    if (config_.window_rope) pass.ropes.push_back(rotations(*config_.window_rope, ranges));
  }
  if (config_.positions == Positions::alibi) {
    if (config_.alibi.bfloat16) {
      pass.key_bias = alibi_key_bias(config_.alibi, config_.heads, longest).to(like_.device());
    } else {
      pass.distance_bias = alibi_distance_bias(config_.alibi, config_.heads, longest).to(like_.device());
    }
  }
  pass.ranges = std::move(ranges);
}

RopeTables Decoder::rotations(const RopeConfig& rope, const std::vector<PositionRange>& ranges) const {
  std::vector<at::Tensor> cosines, sines;
  for (const PositionRange& range : ranges) {
    RopeTables tables =
        rope_tables(rope_frequencies(rope, config_.rotary_dim(), range.end()), range.count, like_, range.begin);
    if (ranges.size() == 1) return tables;
    cosines.push_back(std::move(tables.cosine));
    sines.push_back(std::move(tables.sine));
  }
  return {at::cat(cosines), at::cat(sines)};
}

/// The stream that enters the first layer.
at::Tensor Decoder::first_stream(Pass& pass) const {
  const at::Tensor& ids = pass.request.tokens->ids;
  at::Tensor hidden = pass.hooks.at(embed_site, embedded(ids));
  if (filter_.arm != bft::Arm::plain) begin_filter(pass, ids, hidden);
  if (!all_finite(hidden))
    throw_run_failed("forward: NaN or infinity in the embedded tokens; check the hook that replaces {}",
                     embed_site.name);
  if (config_.positions == Positions::learned) {
    std::vector<at::Tensor> rows;
    for (const PositionRange& range : pass.ranges)
      rows.push_back(weights_.position_embedding.narrow(0, config_.position_offset + range.begin, range.count));
    const at::Tensor positions = rows.size() == 1 ? rows[0] : at::cat(rows);
    hidden = hidden + pass.hooks.at(position_site, positions.expand_as(hidden));
  }
  if (config_.embedding_norm) {
    hidden = norm(hidden, config_.norm, config_.norm_epsilon, weights_.embedding_norm, config_.norm_offset,
                  weights_.embedding_norm_bias);
  }
  return hidden;
}

at::Tensor Decoder::embedded(const at::Tensor& ids) const {
  const at::Tensor own = ids.to(like_.device());
  // The gradient of a head that is tied has every row: that of the few tokens is added to it (tied_table()).
  const bool few = config_.tied_head && kernels::is_tracked(weights_.embedding);
  const at::Tensor rows = weights_.embedding.defined() ? at::embedding(weights_.embedding, own, /*padding_idx=*/-1,
                                                                       /*scale_grad_by_freq=*/false, /*sparse=*/few)
                                                       : head_.rows(own);
  return config_.embedding_scale == 1 ? rows : rows * at::scalar_tensor(config_.embedding_scale, like_);
}

hooks::Stream Decoder::finish(const Pass& pass) const {
  if (pass.request.options.stop_at_layer >= 0) return {pass.hidden};
  hooks::Stream stream{normed(pass.hidden, weights_.final_norm, weights_.final_norm_bias, final_norm_site, pass)};
  if (pass.hooks.wants(hooks::logits_site())) pass.hooks.at(hooks::logits_site(), logits_of(stream.hidden));
  return stream;
}

at::Tensor Decoder::unembed(const at::Tensor& normalized) {
  return logits_of(normalized);
}

at::Tensor Decoder::logits_of(const at::Tensor& normalized) const {
  at::Tensor logits = head_(normalized.to(like_.device()));
  if (config_.logit_scale != 1) logits = logits * config_.logit_scale;
  if (config_.logit_soft_cap == 0) return logits;
  // tanh would make the cap of a product that overflowed.
  if (!all_finite(logits)) throw_run_failed("output head: NaN or infinity in the logits; use --dtype float64");
  return at::tanh(logits / config_.logit_soft_cap) * config_.logit_soft_cap;
}

at::Tensor Decoder::final_normed(const at::Tensor& hidden) const {
  return norm(hidden.to(like_.device()), config_.norm, config_.norm_epsilon, weights_.final_norm, config_.norm_offset,
              weights_.final_norm_bias);
}

Decoder::OutputRows Decoder::output_rows(const at::Tensor& ids) const {
  OutputRows found;
  const auto wide = [](const at::Tensor& x) { return x.to(at::kCPU, at::kDouble); };
  const at::Tensor own = ids.to(like_.device());
  found.norm_weight = wide(weights_.final_norm) + config_.norm_offset;
  found.rows = wide(head_.rows(own)) * config_.logit_scale;
  found.constant = at::zeros({ids.size(0)}, at::kDouble);
  if (weights_.final_norm_bias.defined()) found.constant += found.rows.matmul(wide(weights_.final_norm_bias));
  if (head_.bias().defined()) found.constant += wide(head_.bias().index_select(0, own)) * config_.logit_scale;
  return found;
}

at::Tensor Decoder::target_losses(const at::Tensor& normalized, const at::Tensor& targets) {
  if (!head_.is_packed_for(normalized) || config_.head_bias || config_.logit_scale != 1)
    return HookedModel::target_losses(normalized, targets);
  return kernels::target_losses(normalized, head_.packed(), targets, config_.logit_soft_cap);
}

at::Tensor Decoder::mean_loss(const at::Tensor& normalized, const at::Tensor& targets) const {
  CHECK(!config_.head_bias, "the output head has a bias; models of this family are not trained");
  const at::Tensor scaled = config_.logit_scale == 1 ? normalized : normalized * config_.logit_scale;
  return kernels::trained_mean_loss(scaled, head_.weight(), targets, {.soft_cap = config_.logit_soft_cap});
}

std::vector<hooks::SiteShape> Decoder::sites() const {
  return decoder_sites(config_);
}

void Decoder::check_request(const hooks::ForwardRequest& request) const {
  check_ids(request.tokens->ids, config_.vocabulary);
  check_positions(request.tokens->ids.size(1), request.options.allow_extrapolation);
  CHECK(request.options.stop_at_layer >= -1 && request.options.stop_at_layer <= config_.layers,
        "stop_at_layer: {}; it must be 0 to {}, or -1 for all layers", request.options.stop_at_layer, config_.layers);
  ASSERT(last_layer(request.options) <= runnable_layers_, "layer {} is to run; {} layers were loaded",
         last_layer(request.options) - 1, runnable_layers_);
  request.hooks->check_served_by(sites());
  check_pattern_memory(request);
  if (request.options.stop_at_layer < 0)
    hooks::check_logits_hooks(request, config_.vocabulary, like_.dtype().toScalarType());
}

void Decoder::check_positions(std::int64_t positions, bool allow_extrapolation) const {
  const bool learned = config_.positions == Positions::learned;
  CHECK(positions <= config_.max_positions || (allow_extrapolation && !learned),
        "tokens: {} positions; the model was made for {} at most. Shorten the text{}", positions, config_.max_positions,
        learned ? ": it has no vector for a later position" : ", or give --allow-extrapolation");
}

void Decoder::check_pattern_memory(const hooks::ForwardRequest& request) const {
  const at::Tensor& ids = request.tokens->ids;
  std::uint64_t needed = like_.dtype().itemsize();
  for (const std::int64_t size : {ids.size(0), config_.heads, ids.size(1), ids.size(1)}) {
    needed = checked_mul(needed, static_cast<std::uint64_t>(size), "size of hook_pattern");
  }
  if (needed <= request.options.pattern_memory_bytes) return;
  for (std::int64_t layer = 0; layer < last_layer(request.options); ++layer) {
    const hooks::Site site = hooks::block_site(layer, "attn.hook_pattern");
    CHECK(!config_.attends(layer) || !request.hooks->wants(site),
          "hook {}: [{}, {}, {}, {}] weights need {}; the bound is {}. Shorten the chunk, or raise --pattern-memory "
          "(ForwardOptions::pattern_memory_bytes)",
          site.name, ids.size(0), config_.heads, ids.size(1), ids.size(1), format_bytes(needed),
          format_bytes(request.options.pattern_memory_bytes));
  }
}

std::int64_t Decoder::last_layer(const hooks::ForwardOptions& options) const {
  return options.stop_at_layer < 0 ? config_.layers : options.stop_at_layer;
}

at::Tensor Decoder::normed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const hooks::Site& site, const Pass& pass) const {
  if (!pass.hooks.wants(site)) return norm(x, config_.norm, config_.norm_epsilon, weight, config_.norm_offset, bias);
  return norm_with_site(x, config_.norm, config_.norm_epsilon, weight, config_.norm_offset, bias,
                        pass.hooks.replaces(site), [&](const at::Tensor& seen) { return pass.hooks.at(site, seen); });
}

/// Whether a product adds the stream before it stores its result. A hook may want the result alone; types of 16 bits
/// round it first, as the models' own code does.
bool Decoder::adds_in_product(const hooks::Site& site, const Pass& pass) const {
  return !config_.post_norm && config_.residual_scale == 1 && !pass.hooks.wants(site) && like_.dtype().itemsize() >= 4;
}

at::Tensor Decoder::block(const Layer& weights, std::int64_t layer, at::Tensor hidden, Pass& pass) const {
  const auto site = [layer](std::string_view rest) { return hooks::block_site(layer, rest); };
  const LayerWeights& rest = weights.rest;
  hidden = pass.at(layer, "hook_resid_pre", std::move(hidden));
  const at::Tensor attention_input = config_.pre_norm ? normed(hidden, rest.attention_norm, rest.attention_norm_bias,
                                                               site("ln1.hook_normalized"), pass)
                                                      : hidden;
  // The stream after attention. With parallel_residual the MLP does not read it.
  at::Tensor middle;
  const bool gains = gains_in_stream(pass);
  if (!gains && adds_in_product(site("hook_attn_out"), pass)) {
    middle = attention(weights, layer, attention_input, hidden, pass);
  } else {
    at::Tensor attended = attention(weights, layer, attention_input, {}, pass);
    if (config_.post_norm)
      attended = normed(attended, rest.attention_post_norm, {}, site("ln1_post.hook_normalized"), pass);
    if (config_.residual_scale != 1) attended = attended * config_.residual_scale;
    if (gains) attended = gained(weights, layer, attended, attention_input, pass);
    middle = hidden + pass.at(layer, "hook_attn_out", attended);
  }
  if (!config_.parallel_residual) middle = pass.at(layer, "hook_resid_mid", middle);

  const at::Tensor& mlp_stream = config_.parallel_residual ? hidden : middle;
  const at::Tensor mlp_input =
      config_.shared_norm ? attention_input
      : config_.pre_norm  ? normed(mlp_stream, rest.mlp_norm, rest.mlp_norm_bias, site("ln2.hook_normalized"), pass)
                          : mlp_stream;
  const LayerProjections& projections = weights.projections;
  if (pass.filter.precision.defined()) return filtered_feedforward(weights, layer, mlp_input, middle, pass);
  if (!config_.has_experts(layer) && adds_in_product(site("hook_mlp_out"), pass)) {
    return pass.at(layer, "hook_resid_post",
                   dense_feedforward(config_, projections, layer, mlp_input, middle, pass.hooks));
  }
  at::Tensor fed = config_.has_experts(layer)
                       ? expert_feedforward(config_, projections, layer, mlp_input, pass.hooks)
                       : dense_feedforward(config_, projections, layer, mlp_input, {}, pass.hooks);
  if (config_.post_norm) fed = normed(fed, rest.mlp_post_norm, {}, site("ln2_post.hook_normalized"), pass);
  if (config_.residual_scale != 1) fed = fed * config_.residual_scale;
  return pass.at(layer, "hook_resid_post", middle + pass.at(layer, "hook_mlp_out", fed));
}

/// The result of attention, plus the residual if there is one.
at::Tensor Decoder::attention(const Layer& weights, std::int64_t layer, const at::Tensor& input,
                              const at::Tensor& residual, Pass& pass) const {
  if (!config_.attends(layer)) return without_attention(weights, layer, input, residual, pass);
  // Queries, keys and values live no longer than the call that reads them.
  at::Tensor z;  // [batch, position, head, value_dim]
  if (filters(pass)) {
    z = filtered_values(weights, layer, input, pass);
  } else {
    const at::Tensor attended =
        weighted_values(weights.rest.sink_logit, layer, projected(weights, layer, input, pass), pass);
    z = pass.at(layer, "attn.hook_z", attended.transpose(1, 2));
  }
  const LayerProjections& projections = weights.projections;
  return output_projection(projections.output, layer, with_output_gate(projections.gate_score, layer, z, input, pass),
                           residual, pass);
}

/// What a layer has in place of softmax attention.
at::Tensor Decoder::without_attention(const Layer& weights, std::int64_t layer, const at::Tensor& input,
                                      const at::Tensor& residual, const Pass& pass) const {
  const auto run = [&](const at::Tensor& rows, const at::Tensor& added, KeyValueCache::Layer* held) {
    if (config_.has_convolution(layer))
      return convolution_layer(weights.projections, weights.rest, rows, added,
                               held == nullptr ? nullptr : &held->convolution_past);
    return delta_layer(config_, weights.projections, weights.rest, rows, added,
                       held == nullptr ? nullptr : &held->delta);
  };
  if (pass.segments.empty()) return run(input, residual, nullptr);
  std::vector<at::Tensor> outputs;
  for (const CachedSegment& segment : pass.segments) {
    const auto own = [&segment](const at::Tensor& t) { return t.narrow(1, segment.first_row, segment.rows); };
    outputs.push_back(run(own(input), residual.defined() ? own(residual) : residual, &segment.cache->layer(layer)));
  }
  return at::cat(outputs, 1);
}

hooks::Qkv Decoder::projected(const Layer& weights, std::int64_t layer, const at::Tensor& input,
                              const Pass& pass) const {
  if (config_.has_latent()) return expanded(weights, layer, input, pass);
  const LayerProjections& projections = weights.projections;
  std::vector<at::Tensor> rows = projected_by({&projections.query, &projections.key, &projections.value}, input);
  const auto heads = [&](at::Tensor found, std::int64_t dimensions, std::string_view site, double scale = 1) {
    if (config_.qkv_clip) found = found.clamp(-*config_.qkv_clip, *config_.qkv_clip);
    if (scale != 1) found = found * scale;
    return pass.at(layer, site, found.view({input.size(0), input.size(1), -1, dimensions}));
  };
  const at::Tensor query = heads(std::move(rows[0]), config_.head_dim, "attn.hook_q");
  const at::Tensor key = heads(std::move(rows[1]), config_.head_dim, "attn.hook_k");
  const at::Tensor value = heads(std::move(rows[2]), config_.value_dim(), "attn.hook_v", config_.value_scale);
  return {positioned(query, weights.rest.query_norm, layer, "attn.hook_rot_q", pass).transpose(1, 2),
          positioned(key, weights.rest.key_norm, layer, "attn.hook_rot_k", pass).transpose(1, 2),
          value.transpose(1, 2)};
}

/// Queries, keys and values of latent attention.
hooks::Qkv Decoder::expanded(const Layer& weights, std::int64_t layer, const at::Tensor& input,
                             const Pass& pass) const {
  const LayerProjections& projections = weights.projections;
  const auto normed = [](const at::Tensor& rows, const at::Tensor& weight) {
    return norm(rows, Norm::rms, latent_norm_epsilon, weight, 0);
  };
  const auto heads = [&](const at::Tensor& rows) { return rows.unflatten(2, {config_.heads, -1}); };
  const at::Tensor query_input = projections.query_latent.defined()
                                     ? normed(projections.query_latent(input), weights.rest.query_latent_norm)
                                     : input;
  const at::Tensor query = pass.at(layer, "attn.hook_q", heads(projections.query(query_input)));
  const at::Tensor row = normed(projections.key_latent(input), weights.rest.key_latent_norm);
  const at::Tensor shared = projections.key_rotated(input).unsqueeze(2).expand({-1, -1, config_.heads, -1});
  const at::Tensor key = pass.at(layer, "attn.hook_k", at::cat({heads(projections.key(row)), shared}, -1));
  const at::Tensor value = pass.at(layer, "attn.hook_v", heads(projections.value(row)));
  const auto positioned = [&](const at::Tensor& x, std::string_view site) {
    const std::int64_t still = config_.head_dim - config_.latent.rotated;
    const at::Tensor rotated = rotate(x.slice(-1, still).contiguous(), pass.ropes[0]);
    return pass.at(layer, site, at::cat({x.slice(-1, 0, still), rotated}, -1)).transpose(1, 2);
  };
  return {positioned(query, "attn.hook_rot_q"), positioned(key, "attn.hook_rot_k"), value.transpose(1, 2)};
}

at::Tensor Decoder::inner_normed(const at::Tensor& x, const at::Tensor& weight) const {
  switch (config_.qk_norm) {
    case QkNorm::none:
      break;
    case QkNorm::head:
      return norm(x, Norm::rms, config_.norm_epsilon, weight, config_.norm_offset);
    case QkNorm::heads:
      return norm(x, Norm::layer, config_.norm_epsilon, weight, 0);
    case QkNorm::whole:
      return norm(x.flatten(2), Norm::rms, config_.norm_epsilon, weight, 0).view_as(x);
  }
  return x;
}

at::Tensor Decoder::positioned(const at::Tensor& heads, const at::Tensor& weight, std::int64_t layer,
                               std::string_view site, const Pass& pass) const {
  if (!config_.rotates(layer)) return inner_normed(heads, weight);
  const bool windowed = config_.window_rope && config_.window[static_cast<std::size_t>(layer)] > 0;
  const RopeTables& tables = pass.ropes[windowed ? 1 : 0];
  if (config_.rotated_before_norm) return pass.at(layer, site, inner_normed(rotate(heads, tables), weight));
  return pass.at(layer, site, rotate(inner_normed(heads, weight), tables));
}

kernels::AttentionOptions Decoder::attention_options(std::int64_t layer, const Pass& pass) const {
  kernels::AttentionOptions options;
  options.scale = config_.attention_scale;
  if (config_.scale_by_layer) {
    const double scale = options.scale == 0 ? 1 / std::sqrt(static_cast<double>(config_.head_dim)) : options.scale;
    options.scale = scale / static_cast<double>(layer + 1);
  }
  if (const std::int64_t window = config_.window[static_cast<std::size_t>(layer)]; window > 0) options.window = window;
  options.soft_cap = config_.attention_soft_cap;
  options.key_bias = pass.key_bias;
  options.distance_bias = pass.distance_bias;
  return options;
}

at::Tensor Decoder::weighted_values(const at::Tensor& sink_logit, std::int64_t layer, const hooks::Qkv& qkv,
                                    const Pass& pass) const {
  kernels::AttentionOptions options = attention_options(layer, pass);
  options.sink_logit = sink_logit;
  const hooks::Site site = hooks::block_site(layer, "attn.hook_pattern");
  if (pass.hooks.replaces(site)) return apply_pattern(pass.hooks.at(site, attention_pattern(qkv, options)), qkv.value);
  const at::Tensor output = attend(layer, qkv, options, pass.attention);
  if (pass.hooks.wants(site)) pass.hooks.at(site, attention_pattern(qkv, options));
  return output;
}

at::Tensor Decoder::with_output_gate(const Projection& score, std::int64_t layer, const at::Tensor& z,
                                     const at::Tensor& input, const Pass& pass) const {
  if (config_.gate == Gate::none) return z;
  at::Tensor gate = at::sigmoid(score(input));  // [batch, position, rows]
  if (config_.gate == Gate::elementwise) gate = gate.view(z.sizes());
  gate = pass.at(layer, "attn.hook_gate", gate);
  return z * (config_.gate == Gate::headwise ? gate.unsqueeze(-1) : gate);
}

at::Tensor Decoder::output_projection(const Projection& output, std::int64_t layer, const at::Tensor& z,
                                      const at::Tensor& residual, const Pass& pass) const {
  const hooks::Site site = hooks::block_site(layer, "attn.hook_result");
  if (pass.hooks.wants(site)) {
    const at::Tensor by_head = output.weight().view({config_.width, config_.heads, config_.value_dim()});
    const at::Tensor result = pass.hooks.at(site, at::einsum("bthd,whd->bthw", {z, by_head}));
    if (pass.hooks.replaces(site)) {
      at::Tensor sum = result.sum(2);
      if (config_.output_bias) sum = sum + output.bias();
      return residual.defined() ? residual + sum : sum;
    }
  }
  return output(z.flatten(2), Activation::none, residual);
}

}  // namespace gainlens::models
