// The loops of pointwise attention in float32 against library calls over padded sequences in double.
#include "kernels/gradient/pointwise_attention.h"

#include "core/error.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::kernels {
namespace pointwise_attention_test {

/// One case: inputs in double, which the loops get as float.
struct Inputs {
  std::vector<at::Tensor> tensors;  // query, key, value, place bias, time bias, key bias, slope; undefined: absent
  at::Tensor times;
  PackedBounds begin;
  PointwiseAttentionOptions options = {};
};

Inputs random_inputs(std::int64_t dims, std::int64_t heads, std::uint64_t seed) {
  at::manual_seed(seed);
  Inputs made;
  made.begin = {0};
  for (std::int64_t i = 0; i < 40; ++i) made.begin.push_back(made.begin.back() + (i * 7 + 3) % 11);  // some are empty
  made.begin.push_back(made.begin.back() + 50);
  const std::int64_t rows = made.begin.back();
  for (int i = 0; i < 3; ++i) made.tensors.push_back(at::randn({rows, heads, dims}, at::kDouble));
  made.tensors.push_back(at::randn({50}, at::kDouble));
  made.tensors.push_back(at::randn({60}, at::kDouble));
  made.tensors.push_back(at::randn({rows}, at::kDouble));
  made.tensors.push_back(at::tensor({-0.2}, at::kDouble));
  made.times = at::randint(0, 3000, {rows}, at::kDouble).cumsum(0);
  made.options.length = 7;
  return made;
}

struct Found {
  PointwiseMoments moments;
  std::vector<at::Tensor> gradients;
};

/// All results and gradients of a sum with random factors.
Found found_in(const Inputs& inputs, at::ScalarType type, bool with_variance = true) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& x : inputs.tensors)
    leaves.push_back(x.defined() ? x.to(type).clone().requires_grad_(true) : at::Tensor());
  PointwiseAttentionOptions options = inputs.options;
  options.place_bias = leaves[3];
  options.time_bias = leaves[4];
  options.query_times = options.key_times = inputs.times;
  options.key_bias = leaves[5];
  options.distance_slope = leaves[6];
  Found found;
  at::manual_seed(5);
  const at::Tensor of_output = at::randn(leaves[0].sizes(), at::kDouble).to(type),
                   of_variance = at::randn(leaves[0].sizes(), at::kDouble).to(type);
  if (with_variance) {
    found.moments = pointwise_attention_moments(leaves[0], leaves[1], leaves[2], inputs.begin, options);
    ((found.moments.output * of_output).sum() + (found.moments.variance * of_variance).sum()).backward();
  } else {
    found.moments.output = pointwise_attention(leaves[0], leaves[1], leaves[2], inputs.begin, options);
    (found.moments.output * of_output).sum().backward();
  }
  for (const at::Tensor& leaf : leaves) found.gradients.push_back(leaf.defined() ? leaf.grad() : at::Tensor());
  return found;
}

void expect_near(const at::Tensor& found, const at::Tensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(found.sizes(), expected.sizes()) << what;
  const at::Tensor scale = expected.abs() + expected.abs().mean();
  EXPECT_LT(((found.detach().to(at::kDouble) - expected).abs() / scale).max().item<double>(), tolerance) << what;
}

void expect_same(const Inputs& inputs) {
  const Found expected = found_in(inputs, at::kDouble), found = found_in(inputs, at::kFloat);
  expect_near(found.moments.output, expected.moments.output.detach(), 1e-4, "output");
  expect_near(found.moments.variance, expected.moments.variance.detach(), 1e-3, "variance");
  expect_near(found.moments.balance, expected.moments.balance, 1e-4, "balance");
  for (std::size_t i = 0; i < found.gradients.size(); ++i) {
    if (!inputs.tensors[i].defined()) continue;
    expect_near(found.gradients[i], expected.gradients[i], 2e-3, "gradient " + std::to_string(i));
  }
  const Found plain = found_in(inputs, at::kFloat, false), plain_expected = found_in(inputs, at::kDouble, false);
  EXPECT_TRUE(at::equal(plain.moments.output, found.moments.output));
  for (std::size_t i = 0; i < plain.gradients.size(); ++i) {
    if (inputs.tensors[i].defined())
      expect_near(plain.gradients[i], plain_expected.gradients[i], 1e-3, "plain gradient " + std::to_string(i));
  }
}

/// Variances explode where weights cancel: a high floor keeps them comparable in float, and is reached often.
constexpr double high_floor = 0.3;

TEST(PointwiseAttention, LoopsGiveTheResultsAndGradientsOfLibraryCalls) {
  for (const std::int64_t dims : {19, 32}) {
    for (const bool multiplicative : {false, true}) {
      SCOPED_TRACE(std::to_string(dims) + (multiplicative ? " multiplicative" : " presilu"));
      Inputs inputs = random_inputs(dims, 2, 11);
      inputs.options.multiplicative = multiplicative;
      inputs.options.min_weight_share = high_floor;
      expect_same(inputs);
      inputs.options.dropout = {.rate = 0.3, .key = 99, .first_row = 17};
      expect_same(inputs);
      inputs.tensors[6] = at::tensor({-0.1, -0.4}, at::kDouble);  // of each head
      inputs.tensors[5] = inputs.tensors[4] = at::Tensor();
      inputs.options.scale = 0.7;
      expect_same(inputs);
      inputs.tensors[6] = at::Tensor();
      expect_same(inputs);
    }
  }
}

TEST(PointwiseAttention, AHighFloorIsReachedAndShownAsBalance) {
  Inputs inputs = random_inputs(8, 2, 3);
  inputs.options.min_weight_share = high_floor;
  const Found found = found_in(inputs, at::kFloat);
  const at::Tensor raised = found.moments.balance < high_floor;
  EXPECT_GT(raised.sum().item<std::int64_t>(), 10);
  EXPECT_GT(raised.logical_not().sum().item<std::int64_t>(), 10);
  EXPECT_LE(found.moments.balance.max().item<float>(), 1);
}

TEST(PointwiseAttention, LastQueriesAreTheLastRows) {
  Inputs inputs = random_inputs(8, 2, 3);
  PackedBounds begin{0};
  for (const std::int64_t bound : inputs.begin) {
    if (bound > begin.back()) begin.push_back(bound);
  }
  inputs.begin = begin;
  for (const auto type : {at::kFloat, at::kDouble}) {
    const auto as = [&](std::size_t i) { return inputs.tensors[i].to(type); };
    PointwiseAttentionOptions options = inputs.options;
    options.place_bias = as(3);
    options.time_bias = as(4);
    options.query_times = options.key_times = inputs.times;
    options.key_bias = as(5);
    options.distance_slope = as(6);
    const PointwiseMoments all = pointwise_attention_moments(as(0), as(1), as(2), begin, options);
    std::vector<std::int64_t> rows;
    for (std::size_t i = 1; i < begin.size(); ++i) rows.push_back(begin[i] - 1);
    const at::Tensor last = at::tensor(rows, at::kLong);
    options.last_queries = true;
    const PointwiseMoments found =
        pointwise_attention_moments(as(0).index_select(0, last), as(1), as(2), begin, options);
    expect_near(found.output, all.output.index_select(0, last).to(at::kDouble), 1e-6, "output");
    expect_near(found.variance, all.variance.index_select(0, last).to(at::kDouble), 1e-6, "variance");
    expect_near(found.balance, all.balance.index_select(0, last).to(at::kDouble), 1e-6, "balance");
  }
}

TEST(PointwiseAttention, BitsDoNotDependOnThreads) {
  const Inputs inputs = random_inputs(8, 2, 3);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Found one = found_in(inputs, at::kFloat);
  at::set_num_threads(3);
  const Found three = found_in(inputs, at::kFloat);
  at::set_num_threads(threads);
  for (std::size_t i = 0; i < one.gradients.size(); ++i)
    EXPECT_TRUE(at::equal(one.gradients[i], three.gradients[i])) << i;
  EXPECT_TRUE(at::equal(one.moments.variance, three.moments.variance));
}

TEST(PointwiseAttention, AQueryReadsItsOwnTimeAndThoseOfItsKeys) {
  Inputs inputs = random_inputs(8, 2, 3);
  const at::Tensor before = found_in(inputs, at::kFloat, false).moments.output;
  inputs.times = inputs.times.clone();
  const std::int64_t begin = inputs.begin[40], changed = begin + 20;  // of the sequence of 50
  inputs.times.narrow(0, changed, 30) += 1e6;
  const at::Tensor after = found_in(inputs, at::kFloat, false).moments.output;
  EXPECT_TRUE(at::equal(after.narrow(0, 0, changed), before.narrow(0, 0, changed)));
  for (std::int64_t row = changed; row < begin + 50; ++row) EXPECT_FALSE(at::equal(after[row], before[row])) << row;
}

TEST(PointwiseAttention, ShapesThatDoNotFitAreInternalErrors) {
  Inputs inputs = random_inputs(8, 2, 3);
  inputs.tensors[3] = inputs.tensors[3].narrow(0, 0, 49);  // a sequence has 50 positions
  EXPECT_THROW(found_in(inputs, at::kFloat), InternalError);
  inputs = random_inputs(8, 2, 3);
  inputs.times = inputs.times.to(at::kFloat);
  EXPECT_THROW(found_in(inputs, at::kFloat), InternalError);
  inputs = random_inputs(8, 2, 3);
  inputs.tensors[6] = at::zeros({3}, at::kDouble);
  EXPECT_THROW(found_in(inputs, at::kFloat), InternalError);
}

}  // namespace pointwise_attention_test
}  // namespace gainlens::kernels
