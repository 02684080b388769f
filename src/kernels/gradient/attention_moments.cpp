#include "kernels/gradient/attention_moments.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace gainlens::kernels {
namespace {

/// The mean of the values, [kv_head, 1, value_dim] float64. Offsets from it are small, so their products lose little in
/// the float32 of the backward pass.
at::Tensor mean_value(const at::Tensor& value) {
  return value.mean(1, /*keepdim=*/true, at::kDouble);
}

/// Expands [kv_head, 1, x] to [head, 1, x] for the query heads of the block.
at::Tensor for_heads(const ScoreInputs& in, const ScoreBlock& block, const at::Tensor& rows) {
  return rows.slice(0, block.kv_begin, block.kv_end).repeat_interleave(in.shape.group, 0);
}

at::Tensor hide(const at::Tensor& tensor, const BlockWeights& weights, double value) {
  return weights.empty.defined() ? tensor.masked_fill(weights.empty, value) : tensor;
}

/// e - c and S of a block, [head, query, value_dim] each, float64.
std::pair<at::Tensor, at::Tensor> centred_moments(const ScoreInputs& in, const ScoreBlock& block, const at::Tensor& p,
                                                  const CentredValues& values) {
  const OtherKeys others = moments_of_others(block, p, values);
  if (block.keys.begin > 0) return {others.offset, others.residual};
  const at::Tensor first = p.slice(2, 0, 1).to(at::kDouble),
                   distance = for_heads(in, block, values.offsets().slice(1, 0, 1)) - others.offset;
  return {others.offset + first * distance, others.weight * (others.residual + first * distance.square())};
}

/// Stores the output alone. No value is squared, so values need no centre.
void store_output(const ScoreInputs& in, const ScoreBlock& block, const at::Tensor& values, AttentionMoments& out) {
  const BlockWeights weights = block_weights(in, block, /*with_cap_slope=*/false);
  const at::Tensor estimate = by_head(block, at::bmm(group_rows(block, weights.p), keys_of(block, values)));
  if (out.centred_estimate.defined()) queries_of(block, in.shape, out.centred_estimate).copy_(estimate);
  queries_of(block, in.shape, out.output).copy_(weights.keys_mass.defined() ? estimate * weights.keys_mass : estimate);
}

void store_moments(const ScoreInputs& in, const ScoreBlock& block, const CentredValues& values, AttentionMoments& out) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto part = [&](const at::Tensor& t) { return queries_of(block, in.shape, t); };
  const BlockWeights weights = block_weights(in, block, /*with_cap_slope=*/false);
  const auto [centred, residual] = centred_moments(in, block, weights.p, values);
  part(out.residual).copy_(hide(residual, weights, nan));
  const at::Tensor squares = weights.p.square().sum(-1, /*keepdim=*/true, at::kDouble);
  part(out.n_eff).unsqueeze(2).copy_(hide(squares.reciprocal().clamp_min_(1), weights, nan));
  part(out.centred_estimate).copy_(hide(centred, weights, 0));
  const at::Tensor estimate = hide(centred + for_heads(in, block, values.centre), weights, 0);
  part(out.output).copy_(weights.keys_mass.defined() ? estimate * weights.keys_mass : estimate);
}

/// Sums over the diagonals of [head, query, key]: element key - query + queries - 1 of [head, queries + keys - 1]. Each
/// row is written with a distance of one element more than its width, so that diagonals become columns. The sum of a
/// column has a fixed order on any device.
at::Tensor diagonal_sums(const at::Tensor& tile) {
  const std::int64_t heads = tile.size(0), queries = tile.size(1), keys = tile.size(2), width = keys + queries - 1;
  const at::Tensor rows = at::zeros({heads, queries * (width + 1)}, tile.options());
  rows.slice(1, 0, queries * width).view({heads, queries, width}).slice(2, queries - 1).copy_(tile);
  return rows.view({heads, queries, width + 1}).sum(1).slice(1, 0, width);
}

/// The backward pass of one sequence, block by block.
class Backward {
 public:
  Backward(const ScoreInputs& in, const at::Tensor& value, bool moments, const at::Tensor& centred_estimate,
           const AttentionMoments& incoming, const WantedGradients& wanted)
      : in_(in), centred_estimate_(centred_estimate), incoming_(incoming) {
    const at::ScalarType type = in.query.scalar_type();
    offsets_ = value.to(type);
    if (moments) {
      const at::Tensor centre = mean_value(value);
      offsets_ = (value.to(at::kDouble) - centre).to(type);
      centre_ = centre.to(type);
    }
    const auto zeros = [](bool is_wanted, const at::Tensor& like) {
      return is_wanted ? at::zeros_like(like) : at::Tensor();
    };
    out_.query = zeros(wanted.query, in.query);
    out_.key = zeros(wanted.key, in.key);
    out_.key_bias = zeros(wanted.key_bias, in.key_bias);
    out_.distance_bias = zeros(wanted.distance_bias, in.distance_bias);
    out_.sink_logit = zeros(wanted.sink_logit, in.sink_logit);
    used_values_ = incoming.residual.defined() ? at::cat({offsets_, offsets_.square()}, 2) : offsets_;
    value_sums_ = zeros(wanted.value, used_values_);
  }

  AttentionGradients run() {
    for (const ScoreBlock& block : score_blocks(in_.options, in_.shape, in_.query.device())) add_block(block);
    if (value_sums_.defined()) {
      const std::int64_t dims = in_.shape.value_dim;
      out_.value = value_sums_.slice(2, 0, dims);
      // d S / d v_j = 2 p_j (v_j - e). The part with e is already in the first half, with the gradient of e.
      if (incoming_.residual.defined()) out_.value = out_.value + 2 * offsets_ * value_sums_.slice(2, dims);
    }
    return out_;
  }

 private:
  at::Tensor part(const ScoreBlock& block, const at::Tensor& t) const { return queries_of(block, in_.shape, t); }

  /// The factors of p_j [u_j | u_j^2] in the loss: [g_e - 2 g_S (e - c) | g_S], [head, query, 2 value_dim]; without
  /// g_S: [g_e].
  at::Tensor multipliers(const ScoreBlock& block, const BlockWeights& weights) const {
    at::Tensor estimate, residual;
    if (incoming_.output.defined()) {
      estimate = part(block, incoming_.output);
      if (weights.keys_mass.defined()) estimate = estimate * weights.keys_mass;
    }
    if (incoming_.residual.defined()) {
      residual = part(block, incoming_.residual);
      const at::Tensor centring = residual * part(block, centred_estimate_) * -2;
      estimate = estimate.defined() ? estimate + centring : centring;
    }
    if (!estimate.defined())
      estimate = at::zeros({weights.p.size(0), weights.p.size(1), in_.shape.value_dim}, weights.p.options());
    return hide(residual.defined() ? at::cat({estimate, residual}, 2) : estimate, weights, 0);
  }

  /// Gradient with respect to the scores that enter the softmax, [head, query, key].
  at::Tensor score_gradient(const ScoreBlock& block, const BlockWeights& weights, const at::Tensor& multiplier) {
    at::Tensor weight_gradients =
        at::bmm(group_rows(block, multiplier), keys_of(block, used_values_).transpose(1, 2)).view(weights.p.sizes());
    if (incoming_.n_eff.defined()) {  // d n_eff / d p_j = -2 n_eff^2 p_j
      const at::Tensor squares = weights.p.square().sum(-1, /*keepdim=*/true);
      const at::Tensor factor = part(block, incoming_.n_eff).unsqueeze(2) * -2 / squares.square_();
      weight_gradients.addcmul_(weights.p, hide(factor, weights, 0));
    }
    at::Tensor score_gradients = at::_softmax_backward_data(weight_gradients, weights.p, -1, weights.p.scalar_type());
    if (weights.sink_mass.defined() && incoming_.output.defined()) add_sink(block, weights, score_gradients);
    return score_gradients;
  }

  /// The output is (1 - p_s) e with 1 - p_s = sigmoid(ln sum_j exp s_j - sink).
  void add_sink(const ScoreBlock& block, const BlockWeights& weights, at::Tensor& score_gradients) {
    at::Tensor estimate = part(block, centred_estimate_);
    if (centre_.defined()) estimate = estimate + for_heads(in_, block, centre_);
    const at::Tensor along = (part(block, incoming_.output) * estimate).sum(-1, /*keepdim=*/true);
    const at::Tensor log_total_gradient = hide(along * weights.sink_mass * weights.keys_mass, weights, 0);
    score_gradients.addcmul_(weights.p, log_total_gradient);
    if (out_.sink_logit.defined())
      heads_of(block, in_.shape, out_.sink_logit.view({-1, 1})).sub_(log_total_gradient.sum(1));
  }

  void add_block(const ScoreBlock& block) {
    const BlockWeights weights = block_weights(in_, block, /*with_cap_slope=*/true);
    const at::Tensor multiplier = multipliers(block, weights);
    if (value_sums_.defined()) {
      keys_of(block, value_sums_).baddbmm_(group_rows(block, weights.p).transpose(1, 2), group_rows(block, multiplier));
    }
    at::Tensor score_gradients = score_gradient(block, weights, multiplier);
    if (out_.key_bias.defined()) add_key_bias(block, score_gradients);
    if (out_.distance_bias.defined()) add_distance_bias(block, score_gradients);
    if (weights.cap_slope.defined()) score_gradients.mul_(weights.cap_slope);
    const at::Tensor rows = group_rows(block, score_gradients);
    if (out_.query.defined())
      part(block, out_.query).copy_(by_head(block, at::bmm(rows, keys_of(block, in_.key))).mul_(in_.shape.scale));
    if (out_.key.defined()) {  // the queries carry the scale
      keys_of(block, out_.key).baddbmm_(rows.transpose(1, 2), group_rows(block, part(block, in_.query)));
    }
  }

  /// Adds [head, x] to columns of a bias gradient, [head or 1, x].
  void add_to_bias(const ScoreBlock& block, const at::Tensor& gradient, std::int64_t begin,
                   const at::Tensor& sums) const {
    const at::Tensor columns = heads_of(block, in_.shape, gradient).slice(1, begin, begin + sums.size(1));
    columns.add_(gradient.size(0) == 1 ? sums.sum(0, /*keepdim=*/true) : sums);
  }

  void add_key_bias(const ScoreBlock& block, const at::Tensor& score_gradients) const {
    add_to_bias(block, out_.key_bias, block.keys.begin, score_gradients.sum(1));
  }

  void add_distance_bias(const ScoreBlock& block, const at::Tensor& score_gradients) const {
    const at::Tensor sums = diagonal_sums(score_gradients);
    // The element of distance 0. The elements before it belong to earlier keys.
    const std::int64_t zero = block.query_end - 1 - block.keys.begin;
    const std::int64_t past = std::min(zero + 1, sums.size(1));
    add_to_bias(block, out_.distance_bias, zero + 1 - past, sums.slice(1, 0, past).flip(1));
    if (past < sums.size(1)) add_to_bias(block, out_.distance_bias, 1, sums.slice(1, past));
  }

  const ScoreInputs& in_;
  at::Tensor centre_;       // [kv_head, 1, value_dim]: c; undefined without moments, where c = 0
  at::Tensor offsets_;      // [kv_head, position, value_dim]: u = v - c
  at::Tensor used_values_;  // [u], or [u | u^2] if S has a gradient
  at::Tensor centred_estimate_;
  const AttentionMoments& incoming_;
  at::Tensor value_sums_;  // [kv_head, position, x]: sum over queries of p_j times the multipliers
  AttentionGradients out_;
};

}  // namespace

AttentionMoments attention_moments(const ScoreInputs& in, const at::Tensor& value, bool moments) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const at::ScalarType type = in.query.scalar_type();
  const auto filled = [&](at::IntArrayRef sizes, double with, at::ScalarType of) {
    return at::full(sizes, with, value.options().dtype(of));
  };
  const std::vector<std::int64_t> sizes{in.shape.heads, in.shape.length, in.shape.value_dim};
  AttentionMoments out;
  out.output = filled(sizes, 0, value.scalar_type());
  if (moments || in.sink_logit.defined()) out.centred_estimate = filled(sizes, 0, type);
  const std::vector<ScoreBlock> blocks = score_blocks(in.options, in.shape, in.query.device());
  if (!moments) {
    const at::Tensor values = value.to(type);
    for (const ScoreBlock& block : blocks) store_output(in, block, values, out);
    return out;
  }
  out.n_eff = filled({in.shape.heads, in.shape.length}, nan, type);
  out.residual = filled(sizes, nan, type);
  const CentredValues values(value, mean_value(value));
  for (const ScoreBlock& block : blocks) store_moments(in, block, values, out);
  return out;
}

AttentionGradients attention_moment_gradients(const ScoreInputs& in, const at::Tensor& value, bool moments,
                                              const at::Tensor& centred_estimate, const AttentionMoments& gradients,
                                              const WantedGradients& wanted) {
  return Backward(in, value, moments, centred_estimate, gradients, wanted).run();
}

}  // namespace gainlens::kernels
