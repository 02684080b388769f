// Statistics of attention for tensors of your own. Here the tensors are random; yours may come from any model.
//
// For the last query of each head the program prints
//   n_eff     the effective number of keys: 256 if all keys have the same weight, 1 if one key has all the weight
//   K         the Kalman gain: how much the values that attention reads are trusted against a prior, from 0 to 1
//   BOS mass  the attention weight of key 0, where a language model has its BOS token
// docs/method.md, "Statistics of one query", has the formulas.
#include "kernels/attention_statistics.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <cstdio>
#include <exception>

namespace kernels = gainlens::kernels;

int main() try {
  constexpr std::int64_t heads = 4;     // query heads
  constexpr std::int64_t kv_heads = 2;  // each key/value head serves two query heads
  constexpr std::int64_t length = 256, head_dim = 64;

  // Tensors are [head, position, head_dim]. Queries and keys are those that attention multiplies: rotary positions and
  // norms of the model are already applied.
  at::manual_seed(0);
  const at::Tensor sharpness = at::arange(1, heads + 1).view({heads, 1, 1});
  const at::Tensor query = sharpness * at::randn({heads, length, head_dim});  // later heads attend to fewer keys
  const at::Tensor key = at::randn({kv_heads, length, head_dim});
  const at::Tensor value = at::randn({kv_heads, length, head_dim});

  // The defaults are causal attention with scores q.k / sqrt(head_dim). Windows, biases, sink logits and priors are
  // options too. The plan keeps its workspace, so use one plan for many calls.
  kernels::AttentionPlan plan(kernels::AttentionOptions{});
  const kernels::QueryStatistics statistics = kernels::attention_statistics(plan, query, key, value);

  // Each statistic is a tensor [head, query]; `first_mass` is [head, query, key].
  for (std::int64_t head = 0; head < heads; ++head) {
    const auto n_eff = statistics.n_eff[head][-1].item<double>();
    const auto gain = statistics.kalman_gain[head][-1].item<double>();
    const auto bos_mass = statistics.first_mass[head][-1][0].item<double>();
    std::printf("head %d: n_eff %.1f of %d keys, K %.3f, BOS mass %.4f\n", static_cast<int>(head), n_eff,
                static_cast<int>(length), gain, bos_mass);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());  // for example tensors whose shapes do not fit together
  return 1;
}
