#include "models/decoder/projection.h"

#include "core/check.h"
#include "kernels/gradient/trained_linear.h"
#include "kernels/gradient_tracking.h"
#include "models/decoder/activation.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gainlens::models {
namespace {

/// Whether a weight is not packed: on a GPU and in float64 libtorch multiplies.
bool stays_plain(const at::Tensor& weight, const at::Tensor& bias, WeightUse use) {
  return use == WeightUse::trained || weight.requires_grad() || weight.scalar_type() == at::kDouble ||
         !weight.is_cpu() || (bias.defined() && bias.requires_grad());
}

/// The experts of a stack [expert, out, in], each packed in the memory of the stack if nobody else holds it.
std::vector<Projection> expert_projections(at::Tensor& stack, const at::Tensor& biases, WeightUse use) {
  std::vector<Projection> experts;
  if (!stack.defined()) return experts;
  const bool alone = stack.use_count() == 1 && stack.storage().use_count() == 1 && stack.is_contiguous();
  for (std::int64_t expert = 0; expert < stack.size(0); ++expert) {
    const at::Tensor bias = biases.defined() ? biases.select(0, expert) : at::Tensor();
    const at::Tensor part = stack.select(0, expert);
    experts.push_back(alone && !stays_plain(stack, biases, use) ? Projection::in_stack(part, bias)
                                                                : Projection(part, bias, use));
  }
  if (use == WeightUse::frozen) stack = at::Tensor();
  return experts;
}

}  // namespace

Projection::Projection(at::Tensor weight, at::Tensor bias, WeightUse use, LowRank low_rank)
    : bias_(std::move(bias)), low_rank_(std::move(low_rank)) {
  if (!weight.defined()) return;
  ASSERT(!low_rank_.defined() || use == WeightUse::trained, "an adapter beside a frozen weight");
  if (stays_plain(weight, bias_, use)) {
    plain_ = std::move(weight);
  } else {
    packed_ = kernels::PackedWeight(std::move(weight));
  }
}

Projection Projection::in_stack(const at::Tensor& weight, at::Tensor bias) {
  Projection projection;
  projection.packed_ = kernels::PackedWeight::in_memory_of(weight);
  projection.bias_ = std::move(bias);
  return projection;
}

bool Projection::is_packed_for(const at::Tensor& input) const {
  return packed_.defined() && !kernels::is_tracked(input);
}

at::Tensor Projection::operator()(const at::Tensor& input, kernels::Activation activation, const at::Tensor& residual,
                                  const at::Tensor& output) const {
  if (is_packed_for(input) && !kernels::is_tracked(residual))
    return kernels::linear(input, packed_, {bias_, activation, residual, output});
  at::Tensor result, added = residual;
  if (is_packed_for(input)) {
    result = kernels::linear(input, packed_, {.bias = bias_, .activation = activation});
  } else if (is_trained_for(input)) {
    const bool adds = activation == kernels::Activation::none;
    result = models::activated(
        adapted(kernels::trained_linear(input, base_weight(), bias_, adds ? residual : at::Tensor()), input),
        activation);
    if (adds) added = at::Tensor();
  } else {
    result = models::activated(adapted(at::linear(input, base_weight(), bias_), input), activation);
  }
  if (added.defined()) result = result + added;
  if (!output.defined()) return result;
  return at::Tensor(output).copy_(result);
}

std::vector<at::Tensor> projected_by(std::initializer_list<const Projection*> projections, const at::Tensor& input) {
  const bool together = std::all_of(projections.begin(), projections.end(),
                                    [&](const Projection* projection) { return projection->is_trained_for(input); });
  std::vector<at::Tensor> weights, biases, results;
  for (const Projection* projection : projections) {
    if (together) {
      weights.push_back(projection->base_weight());
      biases.push_back(projection->bias());
    } else {
      results.push_back((*projection)(input));
    }
  }
  if (!together) return results;
  results = kernels::trained_linears(input, weights, biases);
  at::Tensor down, inner;  // of the projection before
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Projection& projection = **(projections.begin() + i);
    if (!projection.low_rank_.defined()) continue;
    if (!inner.defined() || !projection.low_rank_.down.is_same(down)) inner = projection.inner(input);
    down = projection.low_rank_.down;
    results[i] = projection.adapted_from(results[i], inner);
  }
  return results;
}

at::Tensor Projection::inner(const at::Tensor& input) const {
  const at::Tensor narrow =
      is_trained_for(input) ? kernels::trained_linear(input, low_rank_.down) : at::linear(input, low_rank_.down);
  return low_rank_.scale == 1 ? narrow : narrow * low_rank_.scale;
}

at::Tensor Projection::adapted_from(const at::Tensor& base, const at::Tensor& inner) const {
  if (is_trained_for(inner)) return kernels::trained_linear(inner, low_rank_.up, {}, base);
  return base + at::linear(inner, low_rank_.up);
}

at::Tensor Projection::adapted(const at::Tensor& base, const at::Tensor& input) const {
  return low_rank_.defined() ? adapted_from(base, inner(input)) : base;
}

at::Tensor Projection::rows(const at::Tensor& ids) const {
  return packed_.defined() ? packed_.rows(ids) : at::embedding(plain_, ids);
}

at::Tensor Projection::base_weight() const {
  return packed_.defined() ? packed_.plain() : plain_;
}

at::Tensor Projection::weight() const {
  return low_rank_.defined() ? base_weight().add(at::mm(low_rank_.up, low_rank_.down), low_rank_.scale) : base_weight();
}

LayerProjections::LayerProjections(LayerWeights& weights, WeightUse use) {
  const auto take = [use](at::Tensor& weight, const at::Tensor& bias, LowRank low_rank = {}) {
    return use == WeightUse::frozen ? Projection(std::exchange(weight, at::Tensor()), bias, use, std::move(low_rank))
                                    : Projection(weight, bias, use, std::move(low_rank));
  };
  const auto adapter_of = [&weights](std::string_view field) {
    const auto found = weights.low_rank.find(field);
    return found == weights.low_rank.end() ? LowRank() : found->second;
  };
  query_latent = take(weights.query_latent, weights.query_latent_bias);
  key_latent = take(weights.key_latent, weights.key_latent_bias);
  key_rotated = take(weights.key_rotated, weights.key_rotated_bias);
  query = take(weights.query, weights.query_bias, adapter_of("query"));
  gate_score = take(weights.gate_score, weights.gate_score_bias, adapter_of("gate_score"));
  key = take(weights.key, weights.key_bias, adapter_of("key"));
  value = take(weights.value, weights.value_bias, adapter_of("value"));
  output = take(weights.output, weights.output_bias, adapter_of("output"));
  delta_query = take(weights.delta_query, {});
  delta_key = take(weights.delta_key, {});
  delta_value = take(weights.delta_value, {});
  delta_gate = take(weights.delta_gate, {});
  delta_beta = take(weights.delta_beta, {});
  delta_decay = take(weights.delta_decay, {});
  delta_output = take(weights.delta_output, {});
  convolution_gate = take(weights.convolution_gate, weights.convolution_gate_bias);
  convolution_output_gate = take(weights.convolution_output_gate, weights.convolution_output_gate_bias);
  convolution_input = take(weights.convolution_input, weights.convolution_input_bias);
  convolution_output = take(weights.convolution_output, weights.convolution_output_bias);
  mlp_gate = take(weights.mlp_gate, weights.mlp_gate_bias, adapter_of("mlp_gate"));
  mlp_up = take(weights.mlp_up, weights.mlp_up_bias, adapter_of("mlp_up"));
  mlp_down = take(weights.mlp_down, weights.mlp_down_bias, adapter_of("mlp_down"));
  router = take(weights.router, weights.router_bias);
  router_correction = weights.router_correction;
  expert_gate = expert_projections(weights.expert_gate, weights.expert_gate_bias, use);
  expert_up = expert_projections(weights.expert_up, weights.expert_up_bias, use);
  expert_down = expert_projections(weights.expert_down, weights.expert_down_bias, use);
  shared_gate = take(weights.shared_gate, weights.shared_gate_bias);
  shared_up = take(weights.shared_up, weights.shared_up_bias);
  shared_down = take(weights.shared_down, weights.shared_down_bias);
  shared_score = take(weights.shared_score, {});
}

}  // namespace gainlens::models
