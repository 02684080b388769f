#include "models/decoder/attention_ops.h"

#include "core/error.h"
#include "kernels/counted_memory.h"
#include "models/materialised_attention.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>

namespace gainlens::models {
namespace attention_ops_test {

using ::testing::ElementsAre;

hooks::Qkv random_qkv(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads, std::int64_t positions) {
  at::manual_seed(3);
  const auto options = at::TensorOptions(at::kDouble);
  return {at::randn({batch, heads, positions, 4}, options), at::randn({batch, kv_heads, positions, 4}, options),
          at::randn({batch, kv_heads, positions, 4}, options)};
}

/// One head, two positions. The queries are zero, so that only the options determine the scores.
hooks::Qkv zero_queries() {
  const at::Tensor zeros = at::zeros({1, 1, 2, 1}, at::kDouble);
  return {zeros, zeros, at::tensor({2.0, 6.0}, at::kDouble).view({1, 1, 2, 1})};
}

struct NamedOptions {
  std::string name;
  kernels::AttentionOptions options;
};
void PrintTo(const NamedOptions& named, std::ostream* out) {
  *out << named.name;
}

std::vector<NamedOptions> every_mask() {
  std::vector<NamedOptions> all(11);
  all[0].name = "causal";
  all[1].name = "bidirectional";
  all[1].options.causal = false;
  all[2].name = "scaled";
  all[2].options.scale = 0.9;
  all[3].name = "window";
  all[3].options.window = 5;
  all[4].name = "window_longer_than_the_chunk";
  all[4].options.window = 1000;
  all[5].name = "soft_cap";
  all[5].options.soft_cap = 0.7;
  all[6].name = "sink_logit";
  all[6].options.sink_logit = at::tensor({0.5, -1.0, 2.0, 0.0}, at::kDouble);
  all[7].name = "key_bias";
  all[7].options.key_bias = at::linspace(-2, 1, 70, at::TensorOptions(at::kDouble));
  all[7].options.key_bias[0] = -std::numeric_limits<double>::infinity();  // query 0 sees no key
  all[8].name = "distance_bias";
  all[8].options.distance_bias = at::linspace(0, -3, 70, at::TensorOptions(at::kDouble));
  all[9].name = "distance_bias_of_heads_both_ways";
  all[9].options.causal = false;
  all[9].options.distance_bias = at::randn({4, 70}, at::TensorOptions(at::kDouble));
  all[10].name = "packed_sequences";
  all[10].options.sequences = {{.begin = 2, .end = 30}, {.begin = 30, .end = 60}};
  return all;
}

class AttentionOps : public ::testing::TestWithParam<NamedOptions> {};

TEST_P(AttentionOps, AllThreeAgree) {
  const hooks::Qkv qkv = random_qkv(2, 4, 2, 70);
  const kernels::AttentionOptions& options = GetParam().options;
  const at::Tensor expected = MaterialisedAttention().run(0, qkv, options);
  EXPECT_TRUE(at::allclose(UsualAttention().run(0, qkv, options), expected, 1e-11, 1e-11));
  EXPECT_TRUE(at::allclose(StatisticsAttention([](auto, auto&&) {}).run(0, qkv, options), expected, 1e-11, 1e-11));
}

/// Gradients of a weighted sum of the output, with respect to query, key, value and sink logit.
std::vector<at::Tensor> gradients(hooks::AttentionOp& operation, const hooks::Qkv& qkv,
                                  kernels::AttentionOptions options) {
  std::vector<at::Tensor> leaves{qkv.query.detach().clone(), qkv.key.detach().clone(), qkv.value.detach().clone()};
  if (options.sink_logit.defined()) leaves.push_back(options.sink_logit = options.sink_logit.detach().clone());
  for (at::Tensor& leaf : leaves) leaf.requires_grad_(true);
  const at::Tensor output = operation.run(0, {leaves[0], leaves[1], leaves[2]}, options);
  (output * at::linspace(-1, 2, output.numel(), output.options()).view(output.sizes())).sum().backward();
  std::vector<at::Tensor> found;
  for (const at::Tensor& leaf : leaves) found.push_back(leaf.grad());
  return found;
}

TEST_P(AttentionOps, GradientsAgree) {
  const hooks::Qkv qkv = random_qkv(2, 4, 2, 70);
  MaterialisedAttention materialised;
  UsualAttention fused;
  const auto expected = gradients(materialised, qkv, GetParam().options),
             found = gradients(fused, qkv, GetParam().options);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(at::allclose(found[i], expected[i], 1e-10, 1e-10)) << i;
}

INSTANTIATE_TEST_SUITE_P(Masks, AttentionOps, ::testing::ValuesIn(every_mask()),
                         [](const auto& param) { return param.param.name; });

TEST(AttentionPattern, CausalByHand) {
  const at::Tensor pattern = attention_pattern(zero_queries(), {});
  EXPECT_TRUE(at::equal(pattern, at::tensor({1.0, 0.0, 0.5, 0.5}, at::kDouble).view({1, 1, 2, 2})));
  EXPECT_TRUE(
      at::equal(apply_pattern(pattern, zero_queries().value), at::tensor({2.0, 4.0}, at::kDouble).view({1, 1, 2, 1})));
}

TEST(AttentionPattern, SinkLogitTakesItsShare) {
  kernels::AttentionOptions options;
  options.sink_logit = at::tensor({std::log(2.0)}, at::kDouble);  // has the weight of two keys
  const at::Tensor pattern = attention_pattern(zero_queries(), options);
  EXPECT_TRUE(
      at::allclose(pattern, at::tensor({1.0 / 3, 0.0, 0.25, 0.25}, at::kDouble).view({1, 1, 2, 2}), 1e-15, 1e-15));
}

TEST(AttentionPattern, KeyBiasWeighsAndHidesKeys) {
  kernels::AttentionOptions options;
  options.key_bias = at::tensor({std::log(3.0), 0.0}, at::kDouble);
  EXPECT_TRUE(at::allclose(attention_pattern(zero_queries(), options)[0][0][1], at::tensor({0.75, 0.25}, at::kDouble),
                           1e-15, 1e-15));
  options.key_bias = at::tensor({-std::numeric_limits<double>::infinity(), 0.0}, at::kDouble).view({1, 2});
  EXPECT_TRUE(at::equal(attention_pattern(zero_queries(), options),
                        at::tensor({0.0, 0.0, 0.0, 1.0}, at::kDouble).view({1, 1, 2, 2})));
}

TEST(AttentionPattern, DistanceBiasWeighsByDistance) {
  kernels::AttentionOptions options;
  options.distance_bias = at::tensor({0.0, std::log(3.0)}, at::kDouble);
  EXPECT_TRUE(at::allclose(attention_pattern(zero_queries(), options)[0][0][1], at::tensor({0.75, 0.25}, at::kDouble),
                           1e-15, 1e-15));
}

TEST(AttentionPattern, SequencesDoNotSeeEachOtherNorPadding) {
  kernels::AttentionOptions options;
  options.sequences = {{.begin = 1, .end = 2}};
  EXPECT_TRUE(at::equal(attention_pattern(zero_queries(), options),
                        at::tensor({0.0, 0.0, 0.0, 1.0}, at::kDouble).view({1, 1, 2, 2})));
}

TEST(UsualAttention, TrainsAWindowInMemoryThatGrowsLinearly) {
  kernels::AttentionOptions options;
  options.window = 64;
  const auto peak = [&](std::int64_t positions) {
    const hooks::Qkv qkv = random_qkv(1, 4, 2, positions);
    UsualAttention attention;
    return kernels::testing::peak_bytes_of([&] { gradients(attention, qkv, options); });
  };
  const std::int64_t short_text = peak(1024), long_text = peak(4096);
  EXPECT_GT(short_text, 0);
  EXPECT_LT(long_text, 4 * short_text + 100);
}

TEST(StatisticsAttention, StatisticsAreThoseOfThePattern) {
  const hooks::Qkv qkv = random_qkv(2, 4, 2, 30);
  std::vector<std::int64_t> layers;
  std::vector<at::Tensor> n_eff;
  StatisticsAttention attention([&](std::int64_t layer, kernels::QueryStatistics&& statistics) {
    layers.push_back(layer);
    n_eff.push_back(statistics.n_eff);
  });
  attention.run(5, qkv, {});
  kernels::AttentionOptions window;
  window.window = 3;
  attention.run(6, qkv, window);
  attention.run(7, qkv, {});
  EXPECT_THAT(layers, ElementsAre(5, 5, 6, 6, 7, 7));                                // two sequences each, in order
  const at::Tensor global = attention_pattern(qkv, {}).pow(2).sum(-1).reciprocal();  // [batch, head, query]
  const at::Tensor local = attention_pattern(qkv, window).pow(2).sum(-1).reciprocal();
  for (const std::size_t sequence : {0u, 1u}) {
    const auto index = static_cast<std::int64_t>(sequence);
    EXPECT_TRUE(at::allclose(n_eff[sequence], global[index], 1e-9, 1e-9));
    EXPECT_TRUE(at::allclose(n_eff[2 + sequence], local[index], 1e-9, 1e-9));
    EXPECT_TRUE(at::allclose(n_eff[4 + sequence], global[index], 1e-9, 1e-9));
  }
}

TEST(StatisticsAttention, RefusesGradients) {
  hooks::Qkv qkv = random_qkv(1, 2, 1, 4);
  qkv.value.requires_grad_(true);
  StatisticsAttention attention([](auto, auto&&) {});
  EXPECT_THROW(attention.run(0, qkv, {}), InternalError);
  EXPECT_THROW(StatisticsAttention(nullptr), InternalError);
}

}  // namespace attention_ops_test
}  // namespace gainlens::models
