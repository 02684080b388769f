#include "models/decoder/feedforward.h"

#include "core/error.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <vector>

namespace gainlens::models {
namespace {

at::Tensor activated(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::silu:
      return at::silu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::gelu_erf:
      return at::gelu(x, "none");
    case Activation::relu:
      return at::relu(x);
  }
  throw_internal_error(__FILE__, __LINE__, "an activation without its function");
}

/// `up` times the activated gate; clipped if the configuration says so.
at::Tensor gated_neurons(const DecoderConfig& config, const at::Tensor& gate, const at::Tensor& up) {
  if (!config.clipped_gate) return activated(config.activation, gate) * up;
  const auto [limit, alpha] = *config.clipped_gate;
  const at::Tensor clipped = gate.clamp_max(limit);
  return (up.clamp(-limit, limit) + 1) * (clipped * at::sigmoid(clipped * alpha));
}

/// Row `expert` of a stack; undefined if the stack is.
at::Tensor of_expert(const at::Tensor& stack, std::int64_t expert) {
  return stack.defined() ? stack.select(0, expert) : at::Tensor();
}

/// Router weight of every expert, [token, expert]; 0 for experts that are not chosen.
at::Tensor routed(const Experts& experts, const at::Tensor& logits) {
  const at::Tensor wide = logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
  const auto [chosen, which] = wide.topk(experts.per_token, -1);
  const at::Tensor weights = experts.normalised ? at::softmax(chosen, -1) : at::softmax(wide, -1).gather(-1, which);
  return at::zeros_like(wide).scatter(-1, which, weights).to(logits.scalar_type());
}

/// Number of positions whose neurons are computed at a time.
constexpr std::int64_t block_positions = 512;

at::Tensor whole_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  return at::linear(input, weight, bias);
}

/// The products of blocks of positions, as in the path without hooks. The bits of a product may depend on its number of
/// rows.
at::Tensor linear_by_blocks(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  std::vector<at::Tensor> blocks;
  for (const at::Tensor& rows : input.flatten(0, -2).split(block_positions))
    blocks.push_back(at::linear(rows, weight, bias));
  std::vector<std::int64_t> sizes = input.sizes().vec();
  sizes.back() = weight.size(0);
  return at::cat(blocks).view(sizes);
}

/// @param linear   (input, weight, bias) -> product
/// @param at_site  (name, tensor) -> the tensor that is used from there on
template <typename Linear, typename AtSite>
at::Tensor fed_forward(const DecoderConfig& config, const LayerWeights& weights, const at::Tensor& input,
                       const Linear& linear, const AtSite& at_site) {
  at::Tensor neurons;
  if (config.gated_mlp) {
    const at::Tensor gate = at_site("mlp.hook_pre", linear(input, weights.mlp_gate, weights.mlp_gate_bias));
    const at::Tensor up = at_site("mlp.hook_pre_linear", linear(input, weights.mlp_up, weights.mlp_up_bias));
    neurons = gated_neurons(config, gate, up);
  } else {
    neurons = activated(config.activation, at_site("mlp.hook_pre", linear(input, weights.mlp_up, weights.mlp_up_bias)));
  }
  return linear(at_site("mlp.hook_post", neurons), weights.mlp_down, weights.mlp_down_bias);
}

}  // namespace

at::Tensor dense_feedforward(const DecoderConfig& config, const LayerWeights& weights, std::int64_t layer,
                             const at::Tensor& input, const hooks::Hooks& hooks) {
  const auto site = [layer](std::string_view name) { return hooks::block_site(layer, name); };
  const auto at_site = [&](std::string_view name, at::Tensor x) { return hooks.at(site(name), std::move(x)); };
  const auto untouched = [](std::string_view, at::Tensor x) { return x; };
  if (at::GradMode::is_enabled()) return fed_forward(config, weights, input, whole_linear, at_site);
  const bool looked_at = hooks.wants(site("mlp.hook_pre")) || hooks.wants(site("mlp.hook_pre_linear")) ||
                         hooks.wants(site("mlp.hook_post"));
  if (looked_at) return fed_forward(config, weights, input, linear_by_blocks, at_site);

  // The neurons of a block of positions stay in the cache. The neurons of a long text are never in memory all at once.
  const at::Tensor tokens = input.flatten(0, -2);
  at::Tensor output = at::empty_like(tokens);
  for (std::int64_t begin = 0; begin < tokens.size(0); begin += block_positions) {
    const std::int64_t end = std::min(begin + block_positions, tokens.size(0));
    output.slice(0, begin, end)
        .copy_(fed_forward(config, weights, tokens.slice(0, begin, end), whole_linear, untouched));
  }
  return output.view(input.sizes());
}

at::Tensor expert_feedforward(const DecoderConfig& config, const LayerWeights& weights, std::int64_t layer,
                              const at::Tensor& input, const hooks::Hooks& hooks) {
  const at::Tensor logits = at::linear(input, weights.router, weights.router_bias);  // [batch, position, expert]
  const at::Tensor shares =
      hooks.at(hooks::block_site(layer, "mlp.hook_expert_weights"), routed(config.experts, logits)).flatten(0, 1);
  const at::Tensor tokens = input.flatten(0, 1);  // [token, width]
  at::Tensor sum = at::zeros_like(tokens);
  for (std::int64_t expert = 0; expert < config.experts.count; ++expert) {
    const at::Tensor share = shares.select(1, expert);
    const at::Tensor which = share.nonzero().squeeze(1);
    if (which.numel() == 0) continue;
    const at::Tensor mine = tokens.index_select(0, which);
    const at::Tensor gate =
        at::linear(mine, of_expert(weights.expert_gate, expert), of_expert(weights.expert_gate_bias, expert));
    const at::Tensor up =
        at::linear(mine, of_expert(weights.expert_up, expert), of_expert(weights.expert_up_bias, expert));
    const at::Tensor down = at::linear(gated_neurons(config, gate, up), of_expert(weights.expert_down, expert),
                                       of_expert(weights.expert_down_bias, expert));
    // In place: no gradient needs the sum so far. A copy of it for every expert would cost more than a small expert.
    sum.index_add_(0, which, down * share.index_select(0, which).unsqueeze(1));
  }
  return sum.view_as(input);
}

}  // namespace gainlens::models
