#include "models/decoder/feedforward.h"

#include "kernels/gradient_tracking.h"
#include "models/decoder/activation.h"
#include "models/decoder/block_positions.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace gainlens::models {
namespace {

kernels::GateFunction gate_function(const DecoderConfig& config) {
  if (!config.clipped_gate) return {.activation = config.activation};
  return {.clipped = true, .limit = config.clipped_gate->limit, .alpha = config.clipped_gate->alpha};
}

/// The neurons [.., mlp width] of one gated layer: fused if no gradient is asked for.
at::Tensor gated_neurons(const DecoderConfig& config, const at::Tensor& input, const Projection& gate,
                         const Projection& up) {
  const kernels::GateFunction function = gate_function(config);
  if (gate.is_packed_for(input) && up.is_packed_for(input))
    return kernels::gated_linear(input, gate.packed(), up.packed(), gate.bias(), up.bias(), function);
  const std::vector<at::Tensor> both = projected_by({&gate, &up}, input);
  return models::gated(both[0], both[1], function);
}

/// The logits of the router, [.., expert].
at::Tensor router_logits(const Experts& experts, const Projection& router, const at::Tensor& input) {
  if (!experts.router_wide || input.element_size() >= 4) return router(input);
  return at::linear(input.to(at::kFloat), router.weight().to(at::kFloat));
}

/// `scores` [.., expert], with -infinity for experts outside the groups that a token keeps.
at::Tensor in_kept_groups(const Experts& experts, const at::Tensor& scores) {
  if (experts.kept_groups == experts.groups) return scores;
  const at::Tensor grouped = scores.unflatten(-1, {experts.groups, -1});
  const at::Tensor group_scores = std::get<0>(grouped.topk(experts.group_leaders, -1)).sum(-1);  // [.., group]
  const at::Tensor kept = std::get<1>(group_scores.topk(experts.kept_groups, -1));
  const at::Tensor left_out = at::ones_like(group_scores, at::kBool).scatter(-1, kept, false);
  return grouped.masked_fill(left_out.unsqueeze(-1), -std::numeric_limits<double>::infinity()).flatten(-2);
}

/// Router weight of every expert, [.., expert]; 0 for experts that are not chosen.
/// @param correction  may be undefined
at::Tensor routed(const Experts& experts, const at::Tensor& logits, const at::Tensor& correction) {
  const at::Tensor wide = logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
  // The order of the softmax is that of the logits.
  const at::Tensor scores = experts.scores == RouterScores::sigmoid ? at::sigmoid(wide) : wide;
  const at::Tensor choosing = in_kept_groups(experts, correction.defined() ? scores + correction : scores);
  const at::Tensor which = std::get<1>(choosing.topk(experts.per_token, -1));
  const at::Tensor chosen = scores.gather(-1, which);
  at::Tensor weights;
  if (experts.scores == RouterScores::sigmoid) {
    constexpr double smallest_sum = 1e-20;  // the reference's
    weights = experts.normalised ? chosen / (chosen.sum(-1, /*keepdim=*/true) + smallest_sum) : chosen;
  } else {
    weights = experts.normalised ? at::softmax(chosen, -1) : at::softmax(wide, -1).gather(-1, which);
  }
  if (experts.scale != 1) weights = weights * experts.scale;
  return at::zeros_like(wide).scatter(-1, which, weights).to(logits.scalar_type());
}

/// The neurons without hooks.
at::Tensor neurons_of(const DecoderConfig& config, const LayerProjections& projections, const at::Tensor& input) {
  return config.gated_mlp ? gated_neurons(config, input, projections.mlp_gate, projections.mlp_up)
                          : projections.mlp_up(input, config.activation);
}

/// down(neurons(input)) + residual, a block of positions at a time. The neurons of a block stay in the cache. The
/// neurons of a long text are never in memory all at once.
/// @param residual  may be undefined
template <typename Neurons>
at::Tensor in_blocks(const Neurons& neurons, const Projection& down, const at::Tensor& input,
                     const at::Tensor& residual) {
  const at::Tensor tokens = input.flatten(0, -2);
  const at::Tensor added = residual.defined() ? residual.flatten(0, -2) : at::Tensor();
  at::Tensor output = at::empty(tokens.sizes(), tokens.options());
  for (std::int64_t begin = 0; begin < tokens.size(0); begin += block_positions) {
    const std::int64_t end = std::min(begin + block_positions, tokens.size(0));
    down(neurons(tokens.slice(0, begin, end)), kernels::Activation::none,
         added.defined() ? added.slice(0, begin, end) : added, output.slice(0, begin, end));
  }
  return output.view(input.sizes());
}

/// The output of the expert that every token passes.
at::Tensor shared_expert(const DecoderConfig& config, const LayerProjections& projections, const at::Tensor& input) {
  const auto neurons = [&](const at::Tensor& tokens) {
    return gated_neurons(config, tokens, projections.shared_gate, projections.shared_up);
  };
  const Projection& down = projections.shared_down;
  const at::Tensor output = down.is_packed_for(input) ? in_blocks(neurons, down, input, {}) : down(neurons(input));
  return config.experts.shared_score ? output * at::sigmoid(projections.shared_score(input)) : output;
}

/// The neurons, with everything that hooks see and replace. Observers never change a result: if no hook replaces what
/// comes before the activation, the neurons are those of neurons_of.
at::Tensor watched_neurons(const DecoderConfig& config, const LayerProjections& projections, const at::Tensor& input,
                           std::int64_t layer, const hooks::Hooks& hooks) {
  const hooks::Site before = hooks::block_site(layer, "mlp.hook_pre"),
                    linear = hooks::block_site(layer, "mlp.hook_pre_linear"),
                    after = hooks::block_site(layer, "mlp.hook_post");
  const bool replaced = hooks.replaces(before) || (config.gated_mlp && hooks.replaces(linear));
  at::Tensor first, second;
  if (replaced || hooks.wants(before))
    first = hooks.at(before, config.gated_mlp ? projections.mlp_gate(input) : projections.mlp_up(input));
  if (config.gated_mlp && (replaced || hooks.wants(linear))) second = hooks.at(linear, projections.mlp_up(input));
  at::Tensor neurons;
  if (!replaced) {
    neurons = neurons_of(config, projections, input);
  } else if (config.gated_mlp) {
    neurons = models::gated(first, second, gate_function(config));
  } else {
    neurons = models::activated(first, config.activation);
  }
  return hooks.at(after, std::move(neurons));
}

/// The neurons from pre-activations that are kept, with every hook.
at::Tensor neurons_with(const DecoderConfig& config, const LayerProjections& projections, const at::Tensor& input,
                        std::int64_t layer, const hooks::Hooks& hooks, PreActivations& seen) {
  const auto at = [&](std::string_view name, at::Tensor tensor) {
    return hooks.at(hooks::block_site(layer, name), std::move(tensor));
  };
  if (!config.gated_mlp) {
    seen.neurons = at("mlp.hook_pre", projections.mlp_up(input));
    return at("mlp.hook_post", models::activated(seen.neurons, config.activation));
  }
  const std::vector<at::Tensor> both = projected_by({&projections.mlp_gate, &projections.mlp_up}, input);
  seen.gates = at("mlp.hook_pre", both[0]);
  seen.neurons = at("mlp.hook_pre_linear", both[1]);
  return at("mlp.hook_post", models::gated(seen.gates, seen.neurons, gate_function(config)));
}

}  // namespace

PreActivations pre_activations(const DecoderConfig& config, const LayerProjections& layer_projections,
                               const at::Tensor& input) {
  PreActivations seen;
  if (config.gated_mlp) seen.gates = layer_projections.mlp_gate(input);
  seen.neurons = layer_projections.mlp_up(input);
  return seen;
}

at::Tensor dense_feedforward(const DecoderConfig& config, const LayerProjections& layer_projections, std::int64_t layer,
                             const at::Tensor& input, const at::Tensor& residual, const hooks::Hooks& hooks,
                             PreActivations* seen) {
  if (seen != nullptr) {
    return layer_projections.mlp_down(neurons_with(config, layer_projections, input, layer, hooks, *seen),
                                      kernels::Activation::none, residual);
  }
  const auto wants = [&](std::string_view name) { return hooks.wants(hooks::block_site(layer, name)); };
  const Projection& down = layer_projections.mlp_down;
  if (wants("mlp.hook_pre") || wants("mlp.hook_pre_linear") || wants("mlp.hook_post"))
    return down(watched_neurons(config, layer_projections, input, layer, hooks), kernels::Activation::none, residual);
  if (!down.is_packed_for(input) || kernels::is_tracked(residual))
    return down(neurons_of(config, layer_projections, input), kernels::Activation::none, residual);

  return in_blocks([&](const at::Tensor& tokens) { return neurons_of(config, layer_projections, tokens); }, down, input,
                   residual);
}

at::Tensor expert_feedforward(const DecoderConfig& config, const LayerProjections& layer_projections,
                              std::int64_t layer, const at::Tensor& input, const hooks::Hooks& hooks) {
  const at::Tensor logits =
      router_logits(config.experts, layer_projections.router, input);  // [batch, position, expert]
  const at::Tensor shares = hooks
                                .at(hooks::block_site(layer, "mlp.hook_expert_weights"),
                                    routed(config.experts, logits, layer_projections.router_correction))
                                .flatten(0, 1);
  const at::Tensor tokens = input.flatten(0, 1);  // [token, width]
  at::Tensor sum = at::zeros_like(tokens);
  for (std::int64_t expert = 0; expert < config.experts.count; ++expert) {
    const auto index = static_cast<std::size_t>(expert);
    const at::Tensor share = shares.select(1, expert);
    const at::Tensor which = share.nonzero().squeeze(1);
    if (which.numel() == 0) continue;
    const at::Tensor neurons = gated_neurons(config, tokens.index_select(0, which),
                                             layer_projections.expert_gate[index], layer_projections.expert_up[index]);
    const at::Tensor down = layer_projections.expert_down[index](neurons);
    // In place: no gradient needs the sum so far. A copy of it for every expert would cost more than a small expert.
    sum.index_add_(0, which, (down * share.index_select(0, which).unsqueeze(1)).to(sum.scalar_type()));
  }
  const at::Tensor chosen = sum.view_as(input);
  return config.experts.shared_width > 0 ? chosen + shared_expert(config, layer_projections, input) : chosen;
}

}  // namespace gainlens::models
