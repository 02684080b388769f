#include "kernels/attention_inputs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace gainlens::kernels {
namespace {

constexpr std::int64_t queries_per_block = 64;

/// True where the query at `positions_q` does not see the key at `positions_k`: [query, key].
at::Tensor hidden_pairs(const AttentionOptions& options, const at::Tensor& positions_q, const at::Tensor& positions_k) {
  const at::Tensor distance = positions_q.unsqueeze(1) - positions_k.unsqueeze(0);
  at::Tensor hidden = at::zeros_like(distance, at::TensorOptions(at::kBool));
  if (options.causal) hidden = hidden.logical_or(distance.lt(0));
  if (options.window) hidden = hidden.logical_or(distance.abs().ge(*options.window));
  return hidden;
}

}  // namespace

at::Tensor attention_blocked(const AttentionOptions& options, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  constexpr const char* where = "attention_blocked";
  const AttentionShape shape = checked_shape(where, options, query, key, value);
  const at::ScalarType compute_type = query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  check_magnitudes(where, compute_type, shape, query, key, value);

  const at::Tensor bias = bias_rows(options.key_bias, compute_type);
  const at::Tensor positions = at::arange(shape.length, at::TensorOptions(at::kLong));
  const at::Tensor keys = key.to(compute_type), values = value.to(compute_type);
  at::Tensor output = at::empty({shape.heads, shape.length, shape.head_dim}, query.options());
  for (std::int64_t begin = 0; begin < shape.length; begin += queries_per_block) {
    const std::int64_t end = std::min(begin + queries_per_block, shape.length);
    const KeyRange first = visible_keys(options, shape.length, begin), last = visible_keys(options, shape.length, end - 1);
    const auto seen = at::indexing::Slice(first.begin, last.end);
    const auto of_group = [&](const at::Tensor& t) { return t.index({at::indexing::Slice(), seen}).unsqueeze(1); };

    // [kv_head, group, query, key]: the heads of a group share keys and values through broadcasting.
    const at::Tensor queries =
        query.slice(1, begin, end).to(compute_type).reshape({shape.kv_heads, shape.group, end - begin, shape.head_dim});
    at::Tensor scores = at::matmul(queries, of_group(keys).transpose(-1, -2)).mul_(shape.scale).reshape({shape.heads, end - begin, -1});
    if (options.soft_cap > 0) scores.div_(options.soft_cap).tanh_().mul_(options.soft_cap);
    if (bias.defined()) scores.add_(bias.slice(1, first.begin, last.end).unsqueeze(1));
    scores.masked_fill_(hidden_pairs(options, positions.slice(0, begin, end), positions.slice(0, first.begin, last.end)),
                        -std::numeric_limits<double>::infinity());

    // The softmax by hand, since the sink logit joins its total only and a row without keys must give 0.
    at::Tensor largest = scores.amax(-1, /*keepdim=*/true).clamp_min(std::numeric_limits<float>::lowest());
    if (options.sink_logit.defined()) largest = at::maximum(largest, options.sink_logit.to(compute_type).view({-1, 1, 1}));
    scores.sub_(largest).exp_();
    at::Tensor total = scores.sum(-1, /*keepdim=*/true);
    if (options.sink_logit.defined()) total = total + (options.sink_logit.to(compute_type).view({-1, 1, 1}) - largest).exp();
    const at::Tensor weighted = at::matmul(scores.view({shape.kv_heads, shape.group, end - begin, -1}), of_group(values));
    output.slice(1, begin, end).copy_(weighted.reshape({shape.heads, end - begin, shape.head_dim}) / total.masked_fill(total == 0, 1));
  }
  return output;
}

}  // namespace gainlens::kernels
