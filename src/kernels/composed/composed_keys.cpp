#include "kernels/composed/composed_keys.h"

#include "kernels/composed/exact_products.h"
#include "kernels/composed/score_blocks.h"
#include "kernels/key_means.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace gainlens::kernels {
namespace {

void add_key_means(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
                   const at::Tensor& key, QueryStatistics& result) {
  const at::NoGradGuard without_gradients;
  const ExactProducts exact;
  const ScoreInputs in(options, shape, query, key);
  const at::Tensor sums = at::zeros({shape.heads, key_windows, shape.length}, query.options().dtype(at::kDouble));
  const auto begins = key_window_begins(shape.length);
  for (const ScoreBlock& block : score_blocks(options, shape, query.device())) {
    const BlockWeights weights = block_weights(in, block, /*with_cap_slope=*/false);
    const at::Tensor p = weights.keys_mass.defined() ? weights.p * weights.keys_mass : weights.p;
    const at::Tensor block_sums = heads_of(block, shape, sums).slice(2, block.keys.begin, block.keys.end);
    for (std::int64_t window = 0; window < key_windows; ++window) {
      const std::int64_t from = std::max(begins[static_cast<std::size_t>(window)], block.query_begin);
      if (from >= block.query_end) break;
      block_sums.select(1, window).add_(p.slice(1, from - block.query_begin).sum(1, /*keepdim=*/false, at::kDouble));
    }
  }
  finish_key_means(options.returned, sums, queries_of_keys(options, shape, sums.device()), result);
}

void add_top_keys(const AttentionOptions& options, const AttentionShape& shape, const at::Tensor& query,
                  const at::Tensor& key, QueryStatistics& result) {
  const at::NoGradGuard without_gradients;
  const ExactProducts exact;
  const ScoreInputs in(options, shape, query, key);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const ScoreBlock& block : score_blocks(options, shape, query.device())) {
    const BlockWeights weights = block_weights(in, block, /*with_cap_slope=*/false);
    const at::Tensor p = weights.keys_mass.defined() ? weights.p * weights.keys_mass : weights.p;
    // at::topk says nothing about which of equal scores it takes.
    const auto [scores, order] = at::sort(block_scores(in, block), /*stable=*/true, -1, /*descending=*/true);
    const std::int64_t kept = std::min(options.returned.top_keys, scores.size(2));
    const at::Tensor chosen = order.slice(2, 0, kept);
    const at::Tensor hidden = scores.slice(2, 0, kept).eq(-infinity);
    queries_of(block, shape, result.top_key)
        .slice(2, 0, kept)
        .copy_((chosen + block.keys.begin).masked_fill_(hidden, -1));
    queries_of(block, shape, result.top_weight)
        .slice(2, 0, kept)
        .copy_(p.gather(2, chosen).masked_fill_(hidden, std::numeric_limits<double>::quiet_NaN()));
  }
}

}  // namespace

SequenceKernel with_key_means(SequenceKernel kernel) {
  return [kernel = std::move(kernel)](const AttentionOptions& options, const AttentionShape& shape,
                                      const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
    QueryStatistics result = kernel(options, shape, query, key, value);
    if (result.key_mean.defined()) add_key_means(options, shape, query, key, result);
    return result;
  };
}

SequenceKernel with_top_keys(SequenceKernel kernel) {
  return [kernel = std::move(kernel)](const AttentionOptions& options, const AttentionShape& shape,
                                      const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
    QueryStatistics result = kernel(options, shape, query, key, value);
    if (result.top_key.defined()) add_top_keys(options, shape, query, key, result);
    return result;
  };
}

}  // namespace gainlens::kernels
