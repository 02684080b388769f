#include "kernels/composed/composed_top_keys.h"

#include "kernels/composed/exact_products.h"
#include "kernels/composed/score_blocks.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace gainlens::kernels {
namespace {

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

SequenceKernel with_top_keys(SequenceKernel kernel) {
  return [kernel = std::move(kernel)](const AttentionOptions& options, const AttentionShape& shape,
                                      const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
    QueryStatistics result = kernel(options, shape, query, key, value);
    if (result.top_key.defined()) add_top_keys(options, shape, query, key, result);
    return result;
  };
}

}  // namespace gainlens::kernels
