#include "kernels/composed/query_weights.h"

#include "core/check.h"
#include "kernels/composed/exact_products.h"
#include "kernels/composed/score_blocks.h"

#include <ATen/ATen.h>

namespace gainlens::kernels {

at::Tensor weights_of_queries(const AttentionOptions& options, const at::Tensor& query, const at::Tensor& key,
                              std::int64_t begin, std::int64_t end) {
  ASSERT(options.sequences.empty(), "weights_of_queries: takes one sequence");
  const AttentionShape shape = shape_of(options, query, key, key);
  ASSERT(0 <= begin && begin < end && end <= shape.length, "weights_of_queries: [{}, {}) of {}", begin, end,
         shape.length);
  const ExactProducts exact;
  const ScoreInputs in(options, shape, query, key);
  const ScoreBlock block{0, shape.kv_heads, begin, end, {0, shape.length}};
  const BlockWeights weights = block_weights(in, block, /*with_cap_slope=*/false);
  return weights.keys_mass.defined() ? weights.p * weights.keys_mass : weights.p;
}

}  // namespace gainlens::kernels
