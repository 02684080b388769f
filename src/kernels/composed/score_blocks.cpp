#include "kernels/composed/score_blocks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace gainlens::kernels {
namespace {

constexpr std::int64_t fewest_queries = 16;

/// How large a block is.
struct BlockSize {
  std::int64_t scores, max_queries;
};
constexpr BlockSize cpu_block{1 << 18, 64}, gpu_block{1 << 24, 1024};

at::Tensor in_type(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.defined() ? tensor.to(type) : at::Tensor();
}

at::Tensor positions(std::int64_t begin, std::int64_t end, const at::Device& device) {
  return at::arange(begin, end, at::TensorOptions(at::kLong).device(device));
}

/// Positions of the block's queries [query, 1] and keys [1, key], int64.
std::pair<at::Tensor, at::Tensor> positions_of(const ScoreBlock& block, const at::Device& device) {
  return {positions(block.query_begin, block.query_end, device).unsqueeze(1),
          positions(block.keys.begin, block.keys.end, device).unsqueeze(0)};
}

/// True if the query does not see the key, [query or 1, key]. Undefined if every query sees every key.
at::Tensor hidden_pairs(const ScoreInputs& in, const ScoreBlock& block) {
  const auto [query, key] = positions_of(block, in.query.device());
  at::Tensor hidden;
  const auto hide = [&](const at::Tensor& more) { hidden = hidden.defined() ? hidden.logical_or(more) : more; };
  if (in.options.causal) hide(key.gt(query));
  if (in.options.window) hide((query - key).abs().ge(*in.options.window));
  if (block.keys.end > in.shape.length) hide(key.ge(in.shape.length));
  return hidden;
}

}  // namespace

ScoreInputs::ScoreInputs(const AttentionOptions& all, const AttentionShape& sizes, const at::Tensor& queries,
                         const at::Tensor& keys, std::int64_t padded)
    : options(all), shape(sizes) {
  const at::ScalarType type = queries.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  query = pad_positions(queries.to(type) * shape.scale, padded);
  key = pad_positions(keys.to(type), padded);
  key_bias = bias_rows(options.key_bias, type);
  if (key_bias.defined()) key_bias = at::constant_pad_nd(key_bias, {0, padded - shape.length});
  distance_bias = bias_rows(options.distance_bias, type);
  sink_logit = in_type(options.sink_logit, type);
}

ScoreInputs::ScoreInputs(const AttentionOptions& all, const AttentionShape& sizes, const at::Tensor& queries,
                         const at::Tensor& keys)
    : ScoreInputs(all, sizes, queries, keys, sizes.length) {}

std::vector<ScoreBlock> score_blocks(const AttentionOptions& options, const AttentionShape& shape,
                                     const at::Device& device) {
  const auto [scores_per_block, max_queries] = device.is_cpu() ? cpu_block : gpu_block;
  const std::int64_t reach = std::min(options.window.value_or(shape.length), shape.length);
  const std::int64_t keys = std::min(shape.length, options.causal ? reach + max_queries : 2 * reach + max_queries);
  const std::int64_t queries = std::clamp(scores_per_block / (shape.group * keys), fewest_queries, max_queries);
  const std::int64_t step = std::min(queries, shape.length);
  const std::int64_t kv_heads =
      std::clamp<std::int64_t>(scores_per_block / (shape.group * step * keys), 1, shape.kv_heads);
  std::vector<ScoreBlock> blocks;
  for (std::int64_t kv_head = 0; kv_head < shape.kv_heads; kv_head += kv_heads) {
    for (std::int64_t begin = options.first_query; begin < shape.length; begin += step) {
      const std::int64_t end = std::min(begin + step, shape.length);
      blocks.push_back({.kv_begin = kv_head,
                        .kv_end = std::min(kv_head + kv_heads, shape.kv_heads),
                        .query_begin = begin,
                        .query_end = end,
                        .keys = {visible_keys(options, shape.length, begin).begin,
                                 visible_keys(options, shape.length, end - 1).end}});
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

at::Tensor by_head(const ScoreBlock& block, const at::Tensor& rows) {
  return rows.reshape({-1, block.query_end - block.query_begin, rows.size(-1)});
}

at::Tensor pad_positions(const at::Tensor& tensor, std::int64_t positions) {
  const std::int64_t missing = positions - tensor.size(1);
  return missing == 0 ? tensor : at::constant_pad_nd(tensor, {0, 0, 0, missing});
}

at::Tensor block_scores(const ScoreInputs& in, const ScoreBlock& block, at::Tensor* cap_slope) {
  at::Tensor scores = by_head(
      block, at::bmm(group_rows(block, queries_of(block, in.shape, in.query)), keys_of(block, in.key).transpose(1, 2)));
  if (const double cap = in.options.soft_cap; cap > 0) {
    scores.div_(cap).tanh_();
    if (cap_slope != nullptr) *cap_slope = scores.square().neg_().add_(1);
    scores.mul_(cap);
  }
  if (in.key_bias.defined()) {
    scores.add_(heads_of(block, in.shape, in.key_bias).slice(1, block.keys.begin, block.keys.end).unsqueeze(1));
  }
  if (in.distance_bias.defined()) {
    const auto [query, key] = positions_of(block, in.query.device());
    const at::Tensor distance = (query - key).abs().clamp_max(in.shape.length - 1);  // greater ones are padding
    const at::Tensor bias = heads_of(block, in.shape, in.distance_bias);
    scores.add_(bias.index_select(1, distance.view(-1)).view({bias.size(0), distance.size(0), -1}));
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (const at::Tensor hidden = hidden_pairs(in, block); hidden.defined()) scores.masked_fill_(hidden, -infinity);
  return scores;
}

BlockWeights block_weights(const ScoreInputs& in, const ScoreBlock& block, bool with_cap_slope) {
  BlockWeights weights;
  const at::Tensor scores = block_scores(in, block, with_cap_slope ? &weights.cap_slope : nullptr);
  weights.p = at::softmax(scores, -1);
  if (in.key_bias.defined() || in.distance_bias.defined()) {
    weights.empty = at::isneginf(scores.amax(-1, /*keepdim=*/true));
    weights.p.masked_fill_(weights.empty, 0);  // the softmax over no key is NaN
  }
  if (in.sink_logit.defined()) {
    const at::Tensor over_keys =
        at::logsumexp(scores, -1, /*keepdim=*/true) - heads_of(block, in.shape, in.sink_logit.view({-1, 1, 1}));
    weights.sink_mass = at::sigmoid(-over_keys);
    weights.keys_mass = at::sigmoid(over_keys);
  }
  return weights;
}

}  // namespace gainlens::kernels
