// Attention statistics from library calls, over blocks of queries that all have the same shape.

#include "kernels/composed/attention_composed.h"

#include "core/check.h"
#include "kernels/attention_sequences.h"
#include "kernels/composed/composed_summary.h"
#include "kernels/composed/exact_products.h"
#include "kernels/composed/value_moments.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace gainlens::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double weightless_score = -1e4;  // its exp is 0 in every type; unlike with -inf, 0 times it is 0

/// The blocks. All have the same shape; the last one is padded.
struct Blocks {
  std::vector<ScoreBlock> blocks;
  std::int64_t positions;  ///< of the text and its padding
};

Blocks blocks_of(const AttentionOptions& options, const AttentionShape& shape, const at::Device& device) {
  const std::int64_t step = composed_queries_per_block(shape.heads, shape.length, !device.is_cpu());
  Blocks all;
  all.positions = options.first_query + (shape.length - options.first_query + step - 1) / step * step;
  for (std::int64_t begin = options.first_query; begin < shape.length; begin += step) {
    const KeyRange first = visible_keys(options, all.positions, begin),
                   last = visible_keys(options, all.positions, begin + step - 1);
    all.blocks.push_back({.kv_begin = 0,
                          .kv_end = shape.kv_heads,
                          .query_begin = begin,
                          .query_end = begin + step,
                          .keys = {first.begin, last.end}});
  }
  return all;
}

class Composition {
 public:
  /// @param value_variance  undefined: the variance of `value`
  Composition(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
              const at::Tensor& key, const at::Tensor& value, const at::Tensor& value_variance)
      : blocks_(blocks_of(options, shape, query.device())),
        in_(options, shape, query, key, blocks_.positions),
        values_(pad_positions(value, blocks_.positions), value.slice(1, 0, 1).to(at::kDouble)),
        result_(allocate_statistics(options, shape, in_.query.scalar_type(), query)) {
    const at::Tensor variance =
        value_variance.defined() ? value_variance
                                 : at::var(values_.offsets().slice(1, 0, shape.length), /*dim=*/1, /*unbiased=*/false);
    result_.value_variance.copy_(variance);
    if (options.returned.kalman_gain_scaled) {
      priors_.inverse_variance = for_heads(variance.reciprocal().masked_fill(variance.eq(0), 0).unsqueeze(1));
    }
    priors_.prior_precision = precision_rows(options, shape, at::kDouble);
    if (options.sink_logit.defined()) priors_.sink_logit = options.sink_logit.to(at::kDouble).unsqueeze(1);
  }

  QueryStatistics run() {
    for (const ScoreBlock& block : blocks_.blocks) {
      summarise_block(in_.options, in_.shape, priors_, sum_block(block), block.query_begin, result_);
    }
    finish_statistics(in_.options, result_);
    return result_;
  }

 private:
  BlockSums sum_block(const ScoreBlock& block) const {
    at::Tensor scores = block_scores(in_, block);
    BlockSums sums;
    sums.first_scores = at::full({in_.shape.heads, scores.size(1), first_keys}, -infinity, scores.options());
    if (block.keys.begin < first_keys) {
      const std::int64_t count = std::min(first_keys, block.keys.end) - block.keys.begin;
      sums.first_scores.narrow(2, block.keys.begin, count).copy_(scores.narrow(2, 0, count));
    }
    if (block.keys.begin == 0) scores.select(2, 0).fill_(-infinity);

    const bool counts = in_.options.estimator.name == Estimator::kish;
    const at::Tensor seen = counts ? at::isneginf(scores).logical_not_() : at::Tensor();
    const bool wide = scores.scalar_type() == at::kDouble;
    const double lowest = wide ? std::numeric_limits<double>::lowest() : std::numeric_limits<float>::lowest();
    const at::Tensor maximum = scores.amax(-1, /*keepdim=*/true).clamp_min(lowest);
    scores.sub_(maximum).clamp_min_(weightless_score);
    const at::Tensor weights = scores.exp();
    sums.maximum = maximum.squeeze(2);
    sums.weighted_score =
        in_.options.returned.entropy ? scores.mul_(weights).sum(-1, /*keepdim=*/false, at::kDouble) : at::Tensor();
    if (in_.options.estimator.name == Estimator::reml) {
      const OtherKeys others = moments_of_others(block, weights, values_);
      sums.total = others.weight.squeeze(2);
      sums.total_squares = weights.square().sum(-1, /*keepdim=*/false, at::kDouble);
      set_moments(sums, others.offset, others.residual);
    } else {
      sums.estimator = estimator_sums(in_.options.estimator.name, block, weights, seen, values_);
      sums.total = sums.estimator.total;
      sums.total_squares = sums.estimator.total_squares;
      set_moments(sums, sums.estimator.offset, sums.estimator.residual);
    }
    return sums;
  }

  void set_moments(BlockSums& sums, const at::Tensor& offset, const at::Tensor& residual) const {
    sums.estimate_others = for_heads(values_.centre) + offset;
    sums.first_distance = for_heads(values_.offsets().slice(1, 0, 1)) - offset;
    sums.residual_others = residual;
  }

  /// Expands [kv_head, 1, x] to [head, 1, x].
  at::Tensor for_heads(const at::Tensor& rows) const { return rows.repeat_interleave(in_.shape.group, 0); }

  const Blocks blocks_;
  const ScoreInputs in_;
  /// Offsets from the value of key 0. A mean over more keys would let later keys change the bits of earlier queries.
  const CentredValues values_;
  QueryStatistics result_;
  SummaryPriors priors_;
};

}  // namespace

QueryStatistics attention_composed(const AttentionOptions& options, const AttentionShape& shape,
                                   const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const at::NoGradGuard without_gradients;
  const ExactProducts exact;
  return Composition(options, shape, query, key, value, /*value_variance=*/{}).run();
}

QueryStatistics attention_composed_first(const AttentionOptions& options, const AttentionShape& shape,
                                         const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                         const at::Tensor& value_variance) {
  ASSERT(options.causal, "the first queries by themselves are those of causal attention");
  const at::NoGradGuard without_gradients;
  const ExactProducts exact;
  const std::int64_t count = std::min(centre_keys, shape.length);
  const auto part = [&](const at::Tensor& tensor) { return tensor.narrow(1, 0, count); };
  AttentionShape own_shape = shape;
  own_shape.length = count;
  const AttentionOptions own = options_of(options, {0, count});
  return Composition(own, own_shape, part(query), part(key), part(value), value_variance).run();
}

}  // namespace gainlens::kernels
