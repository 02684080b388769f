#include "models/decoder.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/quantity.h"
#include "models/attention_ops.h"
#include "models/decoder_shapes.h"
#include "models/decoder_sites.h"
#include "models/rms_norm.h"

#include <ATen/ATen.h>

#include <utility>

namespace gainlens::models {
namespace {

const hooks::Site embed_site{"hook_embed"};
const hooks::Site final_norm_site{"ln_final.hook_normalized"};

at::Tensor activated(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::silu:
      return at::silu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::gelu_erf:
      return at::gelu(x, "none");
  }
  throw_internal_error(__FILE__, __LINE__, "an activation without its function");
}

void check_ids(const at::Tensor& ids, std::int64_t vocabulary) {
  CHECK(ids.defined() && ids.dim() == 2 && ids.scalar_type() == at::kLong, "tokens: ids must be int64 [batch, position]");
  CHECK(ids.numel() > 0, "tokens: there are none; a forward pass needs at least one position");
  const at::Tensor outside = (ids < 0).logical_or(ids >= vocabulary);
  if (!outside.any().item<bool>()) return;
  const at::Tensor first = outside.nonzero()[0];  // [sequence, position]
  const auto sequence = first[0].item<std::int64_t>(), position = first[1].item<std::int64_t>();
  throw_invalid("tokens: id {} at position {} of sequence {}; the vocabulary has {} ids, 0 to {}",
                ids[sequence][position].item<std::int64_t>(), position, sequence, vocabulary, vocabulary - 1);
}

/// One reduction: smallest and largest are NaN where any element is.
bool all_finite(const at::Tensor& hidden) {
  const auto [smallest, largest] = at::aminmax(hidden.detach());
  return at::isfinite(smallest).logical_and(at::isfinite(largest)).item<bool>();
}

/// Runs the operation; what fails in it is told with the layer.
at::Tensor attend(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options, hooks::AttentionOp& operation) {
  try {
    return operation.run(layer, qkv, options);
  } catch (const RunFailed& error) {
    throw_run_failed("layer {}: {}", layer, error.what());
  }
}

}  // namespace

struct Decoder::Pass {
  const hooks::Hooks& hooks;
  hooks::AttentionOp& attention;
  RopeTables rope;

  at::Tensor at(std::int64_t layer, std::string_view site, at::Tensor tensor) const {
    return hooks.at(hooks::block_site(layer, site), std::move(tensor));
  }
};

Decoder::Decoder(DecoderConfig config, DecoderWeights weights)
    : config_(std::move(config)), weights_(std::move(weights)), rope_(rope_frequencies(config_.rope, config_.head_dim)) {
  check_shapes(config_, weights_);
  layout_.heads = config_.heads;
  layout_.kv_heads = config_.kv_heads;
  layout_.head_dim = config_.head_dim;
  layout_.window = config_.window;
  layout_.gated = config_.gate != Gate::none;
}

hooks::Stream Decoder::forward(const hooks::Tokens& tokens, const hooks::ForwardOptions& options, const hooks::Hooks& hooks) {
  check_request(tokens, options, hooks);
  SdpaAttention fused;
  const Pass pass{hooks, options.attention != nullptr ? *options.attention : fused,
                  rope_tables(rope_, tokens.ids.size(1), weights_.embedding.options().requires_grad(false))};
  at::Tensor hidden = hooks.at(embed_site, at::embedding(weights_.embedding, tokens.ids));
  if (!all_finite(hidden)) throw_run_failed("forward: NaN or infinity in the embedded tokens; check what replaces {}", embed_site.name);
  for (std::int64_t layer = 0; layer < last_layer(options); ++layer) {
    hidden = block(layer, std::move(hidden), pass);
    if (!all_finite(hidden)) {
      throw_run_failed("forward: NaN or infinity in the residual stream, first after layer {}; a wider --dtype may hold it", layer);
    }
  }
  if (options.stop_at_layer >= 0) return {hidden, std::nullopt};
  return {weights_.final_norm * hooks.at(final_norm_site, rms_normalized(hidden, config_.norm_epsilon)), std::nullopt};
}

at::Tensor Decoder::unembed(const at::Tensor& normalized) {
  return at::linear(normalized, weights_.head);
}

std::vector<hooks::SiteShape> Decoder::sites() const {
  return decoder_sites(config_);
}

void Decoder::check_request(const hooks::Tokens& tokens, const hooks::ForwardOptions& options, const hooks::Hooks& hooks) const {
  check_ids(tokens.ids, config_.vocabulary);
  const std::int64_t positions = tokens.ids.size(1);
  CHECK(positions <= config_.max_positions || options.allow_extrapolation,
        "tokens: {} positions; the model was made for {} at most. Shorten the text, or give --allow-extrapolation", positions,
        config_.max_positions);
  CHECK(options.stop_at_layer >= -1 && options.stop_at_layer <= config_.layers,
        "stop_at_layer: {}; it must be 0 to {}, or -1 for all layers", options.stop_at_layer, config_.layers);
  hooks.check_served_by(sites());
  check_pattern_memory(tokens, options, hooks);
}

void Decoder::check_pattern_memory(const hooks::Tokens& tokens, const hooks::ForwardOptions& options, const hooks::Hooks& hooks) const {
  std::uint64_t needed = weights_.embedding.element_size();
  for (const std::int64_t size : {tokens.ids.size(0), config_.heads, tokens.ids.size(1), tokens.ids.size(1)}) {
    needed = checked_mul(needed, static_cast<std::uint64_t>(size), "size of hook_pattern");
  }
  if (needed <= options.pattern_memory_bytes) return;
  for (std::int64_t layer = 0; layer < last_layer(options); ++layer) {
    const hooks::Site site = hooks::block_site(layer, "attn.hook_pattern");
    CHECK(!hooks.wants(site),
          "hook {}: [{}, {}, {}, {}] weights need {}; the bound is {}. Shorten the chunk, or raise --pattern-memory "
          "(ForwardOptions::pattern_memory_bytes)",
          site.name, tokens.ids.size(0), config_.heads, tokens.ids.size(1), tokens.ids.size(1), format_bytes(needed),
          format_bytes(options.pattern_memory_bytes));
  }
}

std::int64_t Decoder::last_layer(const hooks::ForwardOptions& options) const {
  return options.stop_at_layer < 0 ? config_.layers : options.stop_at_layer;
}

at::Tensor Decoder::block(std::int64_t layer, at::Tensor hidden, const Pass& pass) const {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  hidden = pass.at(layer, "hook_resid_pre", std::move(hidden));
  const at::Tensor attention_input =
      weights.attention_norm * pass.at(layer, "ln1.hook_normalized", rms_normalized(hidden, config_.norm_epsilon));
  hidden = pass.at(layer, "hook_resid_mid", hidden + attention(layer, attention_input, pass));
  const at::Tensor mlp_input = weights.mlp_norm * pass.at(layer, "ln2.hook_normalized", rms_normalized(hidden, config_.norm_epsilon));
  return pass.at(layer, "hook_resid_post", hidden + mlp(layer, mlp_input, pass));
}

at::Tensor Decoder::attention(std::int64_t layer, const at::Tensor& input, const Pass& pass) const {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const auto heads = [&](const at::Tensor& weight, const at::Tensor& bias, std::int64_t count) {
    return at::linear(input, weight, bias).view({input.size(0), input.size(1), count, config_.head_dim});
  };
  at::Tensor query = pass.at(layer, "attn.hook_q", heads(weights.query, weights.query_bias, config_.heads));
  at::Tensor key = pass.at(layer, "attn.hook_k", heads(weights.key, weights.key_bias, config_.kv_heads));
  const at::Tensor value = pass.at(layer, "attn.hook_v", heads(weights.value, weights.value_bias, config_.kv_heads));
  if (config_.qk_norm) {
    query = rms_norm(query, weights.query_norm, config_.norm_epsilon);
    key = rms_norm(key, weights.key_norm, config_.norm_epsilon);
  }
  query = pass.at(layer, "attn.hook_rot_q", rotate(query, pass.rope));
  key = pass.at(layer, "attn.hook_rot_k", rotate(key, pass.rope));

  const at::Tensor attended = weighted_values(layer, {query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)}, pass);
  const at::Tensor z = pass.at(layer, "attn.hook_z", attended.transpose(1, 2));  // [batch, position, head, head_dim]
  return pass.at(layer, "hook_attn_out", output_projection(layer, gated(layer, z, input, pass), pass));
}

at::Tensor Decoder::weighted_values(std::int64_t layer, const hooks::Qkv& qkv, const Pass& pass) const {
  kernels::AttentionOptions options;
  options.window = config_.window[static_cast<std::size_t>(layer)];
  const hooks::Site site = hooks::block_site(layer, "attn.hook_pattern");
  if (pass.hooks.replaces(site)) return apply_pattern(pass.hooks.at(site, attention_pattern(qkv, options)), qkv.value);
  const at::Tensor output = attend(layer, qkv, options, pass.attention);
  if (pass.hooks.wants(site)) pass.hooks.at(site, attention_pattern(qkv, options));
  return output;
}

at::Tensor Decoder::gated(std::int64_t layer, const at::Tensor& z, const at::Tensor& input, const Pass& pass) const {
  if (config_.gate == Gate::none) return z;
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  at::Tensor gate = at::sigmoid(at::linear(input, weights.gate_score, weights.gate_score_bias));  // [batch, position, rows]
  if (config_.gate == Gate::elementwise) gate = gate.view(z.sizes());
  gate = pass.at(layer, "attn.hook_gate", gate);
  return z * (config_.gate == Gate::headwise ? gate.unsqueeze(-1) : gate);
}

at::Tensor Decoder::output_projection(std::int64_t layer, const at::Tensor& z, const Pass& pass) const {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const hooks::Site site = hooks::block_site(layer, "attn.hook_result");
  if (pass.hooks.wants(site)) {
    const at::Tensor by_head = weights.output.view({config_.width, config_.heads, config_.head_dim});
    const at::Tensor result = pass.hooks.at(site, at::einsum("bthd,whd->bthw", {z, by_head}));
    if (pass.hooks.replaces(site)) {
      const at::Tensor sum = result.sum(2);
      return config_.output_bias ? sum + weights.output_bias : sum;
    }
  }
  return at::linear(z.flatten(2), weights.output, weights.output_bias);
}

at::Tensor Decoder::mlp(std::int64_t layer, const at::Tensor& input, const Pass& pass) const {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const at::Tensor gate = pass.at(layer, "mlp.hook_pre", at::linear(input, weights.mlp_gate, weights.mlp_gate_bias));
  const at::Tensor up = pass.at(layer, "mlp.hook_pre_linear", at::linear(input, weights.mlp_up, weights.mlp_up_bias));
  const at::Tensor neurons = pass.at(layer, "mlp.hook_post", activated(config_.activation, gate) * up);
  return pass.at(layer, "hook_mlp_out", at::linear(neurons, weights.mlp_down, weights.mlp_down_bias));
}

}  // namespace gainlens::models
