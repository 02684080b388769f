#include "kernels/score_blocks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace gainlens::kernels {
namespace {

constexpr std::int64_t scores_per_block = 1 << 18;
constexpr std::int64_t fewest_queries = 16, most_queries = 64;

at::Tensor in_type(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.defined() ? tensor.to(type) : at::Tensor();
}

at::Tensor positions(std::int64_t begin, std::int64_t end, const at::Device& device) {
  return at::arange(begin, end, at::TensorOptions(at::kLong).device(device));
}

/// True where a query of the block does not see a key of the block, [query, key]; undefined where all see all.
at::Tensor hidden_pairs(const AttentionOptions& options, const ScoreBlock& block, const at::Device& device) {
  if (!options.causal && !options.window) return {};
  const at::Tensor query = positions(block.query_begin, block.query_end, device).unsqueeze(1);
  const at::Tensor key = positions(block.keys.begin, block.keys.end, device).unsqueeze(0);
  at::Tensor hidden;
  if (options.causal) hidden = key.gt(query);
  if (options.window) {
    const at::Tensor outside = (query - key).abs().ge(*options.window);
    hidden = hidden.defined() ? hidden.logical_or(outside) : outside;
  }
  return hidden;
}

}  // namespace

ScoreInputs::ScoreInputs(const AttentionOptions& all, const AttentionShape& sizes, const at::Tensor& queries, const at::Tensor& keys)
    : options(all), shape(sizes) {
  const at::ScalarType type = queries.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  query = queries.to(type) * shape.scale;
  key = keys.to(type);
  key_bias = bias_rows(options.key_bias, type);
  distance_bias = bias_rows(options.distance_bias, type);
  sink_logit = in_type(options.sink_logit, type);
}

std::vector<ScoreBlock> score_blocks(const AttentionOptions& options, const AttentionShape& shape) {
  const std::int64_t reach = std::min(options.window.value_or(shape.length), shape.length);
  const std::int64_t keys = std::min(shape.length, options.causal ? reach + most_queries : 2 * reach + most_queries);
  const std::int64_t queries = std::clamp(scores_per_block / (shape.group * keys), fewest_queries, most_queries);
  const std::int64_t step = std::min(queries, shape.length);
  const std::int64_t kv_heads = std::clamp<std::int64_t>(scores_per_block / (shape.group * step * keys), 1, shape.kv_heads);
  std::vector<ScoreBlock> blocks;
  for (std::int64_t kv_head = 0; kv_head < shape.kv_heads; kv_head += kv_heads) {
    for (std::int64_t begin = 0; begin < shape.length; begin += step) {
      const std::int64_t end = std::min(begin + step, shape.length);
      blocks.push_back({.kv_begin = kv_head,
                        .kv_end = std::min(kv_head + kv_heads, shape.kv_heads),
                        .query_begin = begin,
                        .query_end = end,
                        .keys = {visible_keys(options, shape.length, begin).begin, visible_keys(options, shape.length, end - 1).end}});
    }
  }
  return blocks;
}

at::Tensor heads_of(const ScoreBlock& block, const AttentionShape& shape, const at::Tensor& t) {
  return t.size(0) == 1 ? t : t.slice(0, block.kv_begin * shape.group, block.kv_end * shape.group);
}

at::Tensor queries_of(const ScoreBlock& block, const AttentionShape& shape, const at::Tensor& t) {
  return heads_of(block, shape, t).slice(1, block.query_begin, block.query_end);
}

at::Tensor keys_of(const ScoreBlock& block, const at::Tensor& t) {
  return t.slice(0, block.kv_begin, block.kv_end).slice(1, block.keys.begin, block.keys.end);
}

at::Tensor group_rows(const ScoreBlock& block, const at::Tensor& t) {
  return t.reshape({block.kv_end - block.kv_begin, -1, t.size(-1)});
}

at::Tensor distances(const ScoreBlock& block, const at::Device& device) {
  const at::Tensor query = positions(block.query_begin, block.query_end, device), key = positions(block.keys.begin, block.keys.end, device);
  return (query.unsqueeze(1) - key.unsqueeze(0)).abs();
}

BlockWeights block_weights(const ScoreInputs& in, const ScoreBlock& block, bool with_cap_slope) {
  const at::Device device = in.query.device();
  const std::int64_t queries = block.query_end - block.query_begin;
  BlockWeights weights;
  at::Tensor scores = at::bmm(group_rows(block, queries_of(block, in.shape, in.query)), keys_of(block, in.key).transpose(1, 2))
                          .view({(block.kv_end - block.kv_begin) * in.shape.group, queries, -1});
  if (const double cap = in.options.soft_cap; cap > 0) {
    scores.div_(cap).tanh_();
    if (with_cap_slope) weights.cap_slope = scores.square().neg_().add_(1);
    scores.mul_(cap);
  }
  if (in.key_bias.defined()) {
    scores.add_(heads_of(block, in.shape, in.key_bias).slice(1, block.keys.begin, block.keys.end).unsqueeze(1));
  }
  if (in.distance_bias.defined()) {
    scores.add_(heads_of(block, in.shape, in.distance_bias).index({at::indexing::Slice(), distances(block, device)}));
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (const at::Tensor hidden = hidden_pairs(in.options, block, device); hidden.defined()) scores.masked_fill_(hidden, -infinity);

  weights.p = at::softmax(scores, -1);
  if (in.key_bias.defined() || in.distance_bias.defined()) {
    weights.empty = at::isneginf(scores.amax(-1, /*keepdim=*/true));
    weights.p.masked_fill_(weights.empty, 0);  // the softmax over nothing is NaN
  }
  if (in.sink_logit.defined()) {
    const at::Tensor sink = heads_of(block, in.shape, in.sink_logit.view({-1, 1, 1}));
    weights.sink_mass = at::sigmoid(sink - at::logsumexp(scores, -1, /*keepdim=*/true));
  }
  return weights;
}

}  // namespace gainlens::kernels
