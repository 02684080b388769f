#include "models/decoder/attention_ops.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <vector>

namespace gainlens::models {
namespace {

/// t - j of every query t and key j, [query, key]. The queries are the last positions of the keys.
at::Tensor distances(std::int64_t queries, std::int64_t keys, const at::Device& device) {
  const at::Tensor position = at::arange(keys, at::TensorOptions().dtype(at::kLong).device(device));
  return position.slice(0, keys - queries).unsqueeze(1) - position.unsqueeze(0);
}

/// True if query t may see key j, [query, key].
at::Tensor visible(const kernels::AttentionOptions& options, const at::Tensor& distance) {
  at::Tensor mask = at::ones_like(distance, at::kBool);
  if (options.causal) mask = mask.logical_and(distance >= 0);
  if (options.window) mask = mask.logical_and(distance.abs() < *options.window);
  if (options.sequences.empty()) return mask;
  const at::Tensor together = at::zeros_like(mask);
  for (const kernels::Sequence& sequence : options.sequences) {
    together.slice(0, sequence.begin, sequence.end).slice(1, sequence.begin, sequence.end).fill_(true);
  }
  return mask.logical_and(together);
}

/// Repeats each kv head of [batch, kv_head, position, head_dim] for the query heads of its group.
at::Tensor for_every_head(const at::Tensor& grouped, std::int64_t heads) {
  return grouped.repeat_interleave(heads / grouped.size(1), 1);
}

at::Tensor masked_scores(const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  const double scale = options.scale == 0 ? 1 / std::sqrt(static_cast<double>(qkv.query.size(3))) : options.scale;
  at::Tensor scores = at::matmul(qkv.query, for_every_head(qkv.key, qkv.query.size(1)).transpose(2, 3)) * scale;
  if (scores.scalar_type() != at::kDouble) scores = scores.to(at::kFloat);
  if (options.soft_cap != 0) scores = at::tanh(scores / options.soft_cap) * options.soft_cap;
  if (options.key_bias.defined()) {
    const at::Tensor bias = options.key_bias.to(scores.scalar_type());
    scores = scores + (bias.dim() == 1 ? bias : bias.unsqueeze(1));  // [key] or [head, 1, key]
  }
  const at::Tensor distance = distances(qkv.query.size(2), qkv.key.size(2), scores.device());
  if (options.distance_bias.defined()) {
    const at::Tensor bias = options.distance_bias.to(scores.scalar_type());
    scores = scores + at::atleast_2d(bias).index({at::indexing::Slice(), distance.abs()});  // [head or 1, query, key]
  }
  return scores.masked_fill(visible(options, distance).logical_not(), -std::numeric_limits<double>::infinity());
}

}  // namespace

at::Tensor attention_pattern(const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  at::Tensor scores = masked_scores(qkv, options);  // [batch, head, query, key]
  if (options.sink_logit.defined()) {
    const at::Tensor sink =
        options.sink_logit.to(scores.scalar_type()).view({1, -1, 1, 1}).expand({scores.size(0), -1, scores.size(2), 1});
    scores = at::cat({scores, sink}, -1);
  }
  // A bias of -inf can hide every key, and padding sees no key. The softmax over no key would be NaN, and so would its
  // gradient.
  const bool some_see_none =
      options.key_bias.defined() || options.distance_bias.defined() || !options.sequences.empty();
  at::Tensor weights;
  if (some_see_none) {
    const at::Tensor empty = at::isneginf(scores).all(-1, /*keepdim=*/true);
    weights = at::softmax(scores.masked_fill(empty, 0), -1).masked_fill(empty, 0);
  } else {
    weights = at::softmax(scores, -1);
  }
  if (options.sink_logit.defined()) weights = weights.narrow(-1, 0, weights.size(-1) - 1);
  return weights.to(qkv.query.scalar_type());
}

at::Tensor apply_pattern(const at::Tensor& pattern, const at::Tensor& value) {
  return at::matmul(pattern, for_every_head(value, pattern.size(1)));
}

kernels::AttentionOptions options_of_sequence(const kernels::AttentionOptions& options,
                                              const hooks::PrecisionBias& bias, std::int64_t sequence,
                                              std::int64_t positions) {
  kernels::AttentionOptions own = options;
  if (bias.key.defined()) {
    const at::Tensor key = bias.key[sequence];
    own.key_bias = options.key_bias.defined() ? options.key_bias + key : key;
  }
  if (bias.log_decay.defined()) {
    at::Tensor distance = at::arange(positions, bias.log_decay.options().requires_grad(false));
    distance = distance * (bias.log_decay.numel() == 1 ? bias.log_decay : bias.log_decay.unsqueeze(1));
    own.distance_bias = options.distance_bias.defined() ? options.distance_bias + distance : distance;
  }
  return own;
}

at::Tensor attention_pattern(const hooks::Qkv& qkv, const kernels::AttentionOptions& options,
                             const hooks::PrecisionBias& bias) {
  std::vector<at::Tensor> patterns;
  for (std::int64_t sequence = 0; sequence < qkv.query.size(0); ++sequence) {
    const auto own = [sequence](const at::Tensor& t) { return t.narrow(0, sequence, 1); };
    patterns.push_back(attention_pattern({own(qkv.query), own(qkv.key), own(qkv.value)},
                                         options_of_sequence(options, bias, sequence, qkv.key.size(2))));
  }
  return at::cat(patterns);
}

hooks::ObservedAttention observed_by_pattern(const at::Tensor& pattern, const at::Tensor& value) {
  const at::Tensor shares = pattern.to(at::kDouble) / pattern.sum(-1, /*keepdim=*/true, at::kDouble);
  // The first value is the centre: no later one may change earlier bits.
  const at::Tensor wide = for_every_head(value, pattern.size(1)).to(at::kDouble);
  const at::Tensor offsets = wide - wide.slice(2, 0, 1);
  const at::Tensor residual = at::matmul(shares, offsets.square()) - at::matmul(shares, offsets).square();
  const at::ScalarType type = pattern.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return {apply_pattern(pattern, value), shares.square().sum(-1).reciprocal().to(type), residual.clamp_min(0).to(type)};
}

}  // namespace gainlens::models
