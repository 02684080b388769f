#include "recommend/sampled_softmax.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gainlens::recommend {
namespace sampled_softmax_test {

TEST(SampledSoftmax, DrawsInProportionToCounts) {
  const ItemSampler sampler({0, 30, 10, 0, 59}, 1);  // a count of 0 counts as 1
  const std::vector<double> expected{0.3, 0.1, 0.01, 0.59};
  std::vector<double> found(4);
  for (const std::int64_t id : sampler.draw(100000, 1, 2)) found[static_cast<std::size_t>(id - 1)] += 1e-5;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(found[i], expected[i], 5 * std::sqrt(expected[i] * 1e-5));
    EXPECT_NEAR(sampler.log_probability()[static_cast<std::int64_t>(i)].item<double>(), std::log(expected[i]), 1e-5);
  }
  EXPECT_EQ(sampler.draw(50, 1, 2), sampler.draw(50, 1, 2));
  EXPECT_NE(sampler.draw(50, 1, 2), sampler.draw(50, 1, 3));
}

TEST(SampledSoftmax, WithManyDrawsIsTheFullLoss) {
  at::manual_seed(4);
  const at::Tensor hidden = at::randn({20, 8}, at::kDouble), head = at::randn({50, 8}, at::kDouble);
  const at::Tensor targets = at::randint(50, {20}, at::kLong);
  std::vector<std::int64_t> counts{0};
  for (std::int64_t i = 0; i < 50; ++i) counts.push_back(1 + i % 7);
  const ItemSampler sampler(counts, 1);
  const at::Tensor drawn = at::tensor(sampler.draw(400000, 1, 0), at::kLong) - 1;
  const at::Tensor log_probability = sampler.log_probability().to(at::kDouble);
  const double found = sampled_softmax_loss(hidden, head, targets, drawn, log_probability).item<double>();
  // The drawn targets are left out of their rows. What is left estimates the sum over the other items, and the target
  // stands for 1 / (draws probability) of itself.
  const at::Tensor logits = at::mm(hidden, head.t());
  const at::Tensor of_target = logits.gather(1, targets.unsqueeze(1));
  const at::Tensor others = logits.scatter(1, targets.unsqueeze(1), -INFINITY).logsumexp(1, true);
  const at::Tensor lifted = of_target - log_probability.index_select(0, targets).unsqueeze(1) - std::log(400000.0);
  const double expected = (at::logaddexp(others, lifted) - lifted).mean().item<double>();
  EXPECT_NEAR(found, expected, 0.01);
}

}  // namespace sampled_softmax_test
}  // namespace gainlens::recommend
