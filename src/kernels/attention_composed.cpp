// Attention statistics from library calls: blocks of queries of one shape each, whatever the device.

#include "kernels/attention_composed.h"

#include "kernels/attention_sequences.h"
#include "kernels/composed_summary.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace gainlens::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t centre_keys = composed_first_queries;  // values are centred by the mean of so many first keys
constexpr std::int64_t two_pass_rows = 8;                     // queries at a time where distances [head, query, key, head_dim] are laid out
constexpr double weightless_score = -1e4;                     // exp of it is 0 in every type, and 0 times it is 0, unlike -inf

/// About 2048 rows of scores: enough for a matrix product to be fast, little enough that a row may be long.
std::int64_t queries_per_block(const AttentionShape& shape) {
  const auto fitting = static_cast<std::uint64_t>(std::max<std::int64_t>(2048 / shape.heads, 1));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::bit_floor(fitting)), 16, 256);
}

/// Queries [begin, end), of which those behind the text's end are padding.
struct Block {
  std::int64_t begin, end;
  bool two_pass;  ///< causal queries that do not see all keys of the common centre
};

std::vector<Block> blocks_of(const AttentionOptions& options, const AttentionShape& shape) {
  std::vector<Block> blocks;
  if (options.causal) blocks.push_back({0, centre_keys, true});
  const std::int64_t step = queries_per_block(shape);
  for (std::int64_t begin = options.causal ? centre_keys : 0; begin < shape.length; begin += step) {
    blocks.push_back({begin, begin + step, false});
  }
  return blocks;
}

class Composition {
 public:
  /// @param value_variance  undefined: that of `value`
  Composition(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query, const at::Tensor& key,
              const at::Tensor& value, const at::Tensor& value_variance)
      : options_(options),
        shape_(shape),
        type_(query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat),
        blocks_(blocks_of(options, shape)),
        padded_(std::max(blocks_.back().end, centre_keys)),
        query_(query),
        key_(pad_positions(key.to(type_), padded_)),
        value_(pad_positions(value.to(type_), padded_)),
        key_bias_(bias_rows(options.key_bias, type_)),
        distance_bias_(bias_rows(options.distance_bias, type_)),
        positions_(at::arange(padded_, query.options().dtype(at::kLong))),
        result_(allocate_statistics(options, shape, type_, query)) {
    if (key_bias_.defined()) key_bias_ = at::constant_pad_nd(key_bias_, {0, padded_ - shape.length});
    pack_values(value_variance);
    priors_.prior_precision = precision_rows(options, shape, type_);
    if (options.sink_logit.defined()) priors_.sink_logit = options.sink_logit.to(at::kDouble).unsqueeze(1);
  }

  QueryStatistics run() {
    for (const Block& block : blocks_) {
      const BlockSums sums = sum_block(block);
      summarise_block(options_, shape_, priors_, sums, block.begin, result_);
    }
    finish_statistics(options_, result_);
    return result_;
  }

 private:
  /// [kv_head, group query, x] as [head, query, x].
  at::Tensor by_head(const at::Tensor& rows) const { return rows.view({shape_.heads, -1, rows.size(2)}); }

  void pack_values(const at::Tensor& value_variance) {
    const at::Tensor seen = value_.slice(1, 0, shape_.length);
    centre_ = seen.slice(1, 0, centre_keys).mean(1, /*keepdim=*/true, at::kDouble).to(type_);  // [kv_head, 1, head_dim]
    const at::Tensor centred = value_ - centre_;
    packed_ = at::cat({centred, centred.square()}, 2);
    result_.value_variance.copy_(value_variance.defined() ? value_variance
                                                          : at::var(centred.slice(1, 0, shape_.length), /*dim=*/1, /*unbiased=*/false));
    if (!options_.returned.kalman_gain_scaled) return;
    const at::Tensor inverse = result_.value_variance.reciprocal().masked_fill(result_.value_variance.eq(0), 0);
    priors_.inverse_variance = inverse.repeat_interleave(shape_.group, 0).unsqueeze(1);
  }

  /// All that some query of the block sees; the text's end plays no part where attention is causal.
  KeyRange keys_of(const Block& block) const {
    return {visible_keys(options_, padded_, block.begin).begin, visible_keys(options_, padded_, block.end - 1).end};
  }

  /// Scores [head, query, key] as they enter the softmax, -inf where hidden.
  at::Tensor scores_of(const Block& block, KeyRange keys) const {
    const std::int64_t rows = block.end - block.begin;
    const at::Tensor queries = pad_positions(query_.slice(1, block.begin, block.end).to(type_), rows);
    at::Tensor scores = at::bmm(queries.reshape({shape_.kv_heads, shape_.group * rows, shape_.head_dim}),
                                key_.slice(1, keys.begin, keys.end).transpose(1, 2));
    scores = by_head_and_query(scores, rows).mul_(shape_.scale);
    if (options_.soft_cap > 0) scores.div_(options_.soft_cap).tanh_().mul_(options_.soft_cap);
    if (key_bias_.defined()) scores.add_(key_bias_.slice(1, keys.begin, keys.end).unsqueeze(1));
    const at::Tensor key_positions = positions_.slice(0, keys.begin, keys.end);
    const at::Tensor distance = positions_.slice(0, block.begin, block.end).unsqueeze(1) - key_positions.unsqueeze(0);
    if (distance_bias_.defined()) {
      const at::Tensor index = distance.abs().clamp_max(shape_.length - 1).view(-1);  // farther ones are padding
      scores.add_(distance_bias_.index_select(1, index).view({distance_bias_.size(0), rows, -1}));
    }
    at::Tensor hidden = key_positions.ge(shape_.length).unsqueeze(0);
    if (options_.causal) hidden = distance.lt(0);
    if (options_.window) hidden = hidden.logical_or(distance.abs().ge(*options_.window));
    return scores.masked_fill_(hidden, -infinity);
  }

  at::Tensor by_head_and_query(const at::Tensor& scores, std::int64_t rows) const { return scores.view({shape_.heads, rows, -1}); }

  BlockSums sum_block(const Block& block) const {
    const KeyRange keys = keys_of(block);
    at::Tensor scores = scores_of(block, keys);
    BlockSums sums;
    sums.first_scores = at::full({shape_.heads, scores.size(1), first_keys}, -infinity, scores.options());
    if (keys.begin < first_keys) {
      const std::int64_t count = std::min(first_keys, keys.end) - keys.begin;
      sums.first_scores.narrow(2, keys.begin, count).copy_(scores.narrow(2, 0, count));
    }
    if (keys.begin == 0) scores.select(2, 0).fill_(-infinity);

    const double lowest = type_ == at::kDouble ? std::numeric_limits<double>::lowest() : std::numeric_limits<float>::lowest();
    const at::Tensor maximum = scores.amax(-1, /*keepdim=*/true).clamp_min(lowest);
    scores.sub_(maximum).clamp_min_(weightless_score);
    const at::Tensor weights = scores.exp();
    sums.maximum = maximum.squeeze(2);
    sums.total = weights.sum(-1);
    sums.weighted_score = options_.returned.entropy ? scores.mul_(weights).sum(-1) : at::Tensor();
    sums.total_squares = weights.square().sum(-1);
    if (block.two_pass) {
      two_pass_moments(weights, sums);
    } else {
      one_pass_moments(weights, keys, sums);
    }
    return sums;
  }

  /// e' and S' from the sums of centred values and their squares.
  void one_pass_moments(const at::Tensor& weights, KeyRange keys, BlockSums& sums) const {
    const std::int64_t dims = shape_.head_dim, rows = weights.size(1);
    const at::Tensor sum = at::bmm(weights.view({shape_.kv_heads, shape_.group * rows, -1}), packed_.slice(1, keys.begin, keys.end));
    const at::Tensor inverse = sums.total.reciprocal().masked_fill(sums.total.eq(0), 0).unsqueeze(2);
    const at::Tensor moments = by_head(sum).mul_(inverse), offset = moments.slice(2, 0, dims);
    sums.residual_others = (moments.slice(2, dims) - offset.square()).clamp_min_(0);
    sums.estimate_others = of_heads(centre_) + offset;
    sums.first_distance = of_heads(packed_.slice(1, 0, 1).slice(2, 0, dims)) - offset;
  }

  /// e' and S' as sum p (v - e')^2 over the first keys, in float64, relative to v_0: no later key plays a part.
  void two_pass_moments(const at::Tensor& weights, BlockSums& sums) const {
    const at::Tensor values = value_.slice(1, 0, centre_keys).to(at::kDouble);  // [kv_head, key, head_dim]
    const at::Tensor first = values.slice(1, 0, 1), relative = values - first;
    std::vector<at::Tensor> offsets, residuals;
    for (std::int64_t begin = 0; begin < weights.size(1); begin += two_pass_rows) {
      at::Tensor p = weights.slice(1, begin, begin + two_pass_rows).to(at::kDouble);  // [head, query, key]
      const at::Tensor total = p.sum(-1, /*keepdim=*/true);
      p = p / total.masked_fill(total.eq(0), 1);
      const at::Tensor offset = by_head(at::bmm(p.view({shape_.kv_heads, -1, p.size(2)}), relative));
      const at::Tensor grouped = offset.view({shape_.kv_heads, -1, 1, shape_.head_dim});
      const at::Tensor squares = (relative.unsqueeze(1) - grouped).square_();  // [kv_head, group query, key, head_dim]
      const at::Tensor residual = at::matmul(p.view({shape_.kv_heads, -1, 1, p.size(2)}), squares);
      offsets.push_back(offset);
      residuals.push_back(residual.view_as(offset));
    }
    const at::Tensor offset = at::cat(offsets, 1);
    sums.residual_others = at::cat(residuals, 1).to(type_);
    sums.estimate_others = (of_heads(first) + offset).to(type_);
    sums.first_distance = offset.neg().to(type_);
  }

  /// [kv_head, 1, head_dim] for every query head.
  at::Tensor of_heads(const at::Tensor& rows) const { return rows.repeat_interleave(shape_.group, 0); }

  const AttentionOptions& options_;
  const AttentionShape& shape_;
  const at::ScalarType type_;
  const std::vector<Block> blocks_;
  const std::int64_t padded_;            // positions with the padding of the last block
  const at::Tensor query_;               // [head, position, head_dim], dtype of the inputs
  const at::Tensor key_, value_;         // [kv_head, padded position, head_dim]
  at::Tensor key_bias_, distance_bias_;  // [head or 1, (padded) position] or undefined
  const at::Tensor positions_;           // [padded position]
  QueryStatistics result_;
  at::Tensor centre_;  // [kv_head, 1, head_dim]: c
  at::Tensor packed_;  // [kv_head, padded position, 2 head_dim]: v - c, (v - c)^2
  SummaryPriors priors_;
};

}  // namespace

QueryStatistics attention_composed(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
                                   const at::Tensor& key, const at::Tensor& value) {
  const at::NoGradGuard without_gradients;
  const at::NoTF32Guard without_tf32;
  return Composition(options, shape, query, key, value, /*value_variance=*/{}).run();
}

QueryStatistics attention_composed_first(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
                                         const at::Tensor& key, const at::Tensor& value, const at::Tensor& value_variance) {
  ASSERT(options.causal, "the first queries by themselves are those of causal attention");
  const at::NoGradGuard without_gradients;
  const at::NoTF32Guard without_tf32;
  const std::int64_t count = std::min(composed_first_queries, shape.length);
  const auto part = [&](const at::Tensor& tensor) { return tensor.narrow(1, 0, count); };
  AttentionShape own_shape = shape;
  own_shape.length = count;
  const AttentionOptions own = options_of(options, {0, count});
  return Composition(own, own_shape, part(query), part(key), part(value), value_variance).run();
}

}  // namespace gainlens::kernels
