#include "models/feedforward.h"

#include "core/error.h"

#include <ATen/ATen.h>

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

/// What the gate lets through of `up`.
at::Tensor gated(const DecoderConfig& config, const at::Tensor& gate, const at::Tensor& up) {
  if (!config.clipped_gate) return activated(config.activation, gate) * up;
  const auto [limit, alpha] = *config.clipped_gate;
  const at::Tensor clipped = gate.clamp_max(limit);
  return (up.clamp(-limit, limit) + 1) * (clipped * at::sigmoid(clipped * alpha));
}

/// Row `expert` of a stack; undefined where there is none.
at::Tensor of_expert(const at::Tensor& stack, std::int64_t expert) {
  return stack.defined() ? stack.select(0, expert) : at::Tensor();
}

/// Router weight of every expert, 0 where it is not chosen: [token, expert].
at::Tensor routed(const Experts& experts, const at::Tensor& logits) {
  const at::Tensor wide = logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
  const auto [chosen, which] = wide.topk(experts.per_token, -1);
  const at::Tensor weights = experts.normalised ? at::softmax(chosen, -1) : at::softmax(wide, -1).gather(-1, which);
  return at::zeros_like(wide).scatter(-1, which, weights).to(logits.scalar_type());
}

}  // namespace

at::Tensor dense_feedforward(const DecoderConfig& config, const LayerWeights& weights, std::int64_t layer, const at::Tensor& input,
                             const hooks::Hooks& hooks) {
  const auto at_site = [&](std::string_view site, at::Tensor tensor) {
    return hooks.at(hooks::block_site(layer, site), std::move(tensor));
  };
  at::Tensor neurons;
  if (config.gated_mlp) {
    const at::Tensor gate = at_site("mlp.hook_pre", at::linear(input, weights.mlp_gate, weights.mlp_gate_bias));
    const at::Tensor up = at_site("mlp.hook_pre_linear", at::linear(input, weights.mlp_up, weights.mlp_up_bias));
    neurons = gated(config, gate, up);
  } else {
    neurons = activated(config.activation, at_site("mlp.hook_pre", at::linear(input, weights.mlp_up, weights.mlp_up_bias)));
  }
  return at::linear(at_site("mlp.hook_post", neurons), weights.mlp_down, weights.mlp_down_bias);
}

at::Tensor expert_feedforward(const DecoderConfig& config, const LayerWeights& weights, std::int64_t layer, const at::Tensor& input,
                              const hooks::Hooks& hooks) {
  const at::Tensor logits = at::linear(input, weights.router, weights.router_bias);  // [batch, position, expert]
  const at::Tensor shares = hooks.at(hooks::block_site(layer, "mlp.hook_expert_weights"), routed(config.experts, logits)).flatten(0, 1);
  const at::Tensor tokens = input.flatten(0, 1);  // [token, width]
  at::Tensor sum = at::zeros_like(tokens);
  for (std::int64_t expert = 0; expert < config.experts.count; ++expert) {
    const at::Tensor share = shares.select(1, expert);
    const at::Tensor which = share.nonzero().squeeze(1);
    if (which.numel() == 0) continue;
    const at::Tensor mine = tokens.index_select(0, which);
    const at::Tensor gate = at::linear(mine, of_expert(weights.expert_gate, expert), of_expert(weights.expert_gate_bias, expert));
    const at::Tensor up = at::linear(mine, of_expert(weights.expert_up, expert), of_expert(weights.expert_up_bias, expert));
    const at::Tensor down =
        at::linear(gated(config, gate, up), of_expert(weights.expert_down, expert), of_expert(weights.expert_down_bias, expert));
    // In place: no gradient needs the sum so far, and a copy of it for every expert would cost more than a small expert does.
    sum.index_add_(0, which, down * share.index_select(0, which).unsqueeze(1));
  }
  return sum.view_as(input);
}

}  // namespace gainlens::models
