#include "kernels/gradient/recomputed.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace gainlens::kernels {
namespace recomputed_test {

struct Found {
  std::vector<at::Tensor> outputs;
  at::Tensor of_x, of_y, of_weight;
};

/// Three such functions, one after another, called directly or recomputed; one of two outputs goes no further.
Found run(bool again, int& calls) {
  at::manual_seed(3);
  const at::Tensor x = at::randn({4, 5}).requires_grad_(true), y = at::randn({4, 5}).requires_grad_(true);
  const at::Tensor weight = at::randn({5, 5}).requires_grad_(true);
  const TensorFunction f = [&](const std::vector<at::Tensor>& in) {
    ++calls;
    return std::vector<at::Tensor>{at::tanh(in[0].matmul(weight)) + in[1], in[1] * in[0].sigmoid()};
  };
  std::vector<at::Tensor> now{x, y};
  for (int i = 0; i < 3; ++i) now = again ? recomputed(f, now) : f(now);
  now[0].square().sum().backward();
  return {now, x.grad(), y.grad(), weight.grad()};
}

TEST(Recomputed, HasTheSameBits) {
  int once = 0, twice = 0;
  const Found expected = run(false, once), found = run(true, twice);
  EXPECT_EQ(once, 3);
  EXPECT_EQ(twice, 6);
  EXPECT_TRUE(at::equal(found.outputs[0], expected.outputs[0]));
  EXPECT_TRUE(at::equal(found.outputs[1], expected.outputs[1]));
  EXPECT_TRUE(at::equal(found.of_x, expected.of_x));
  EXPECT_TRUE(at::equal(found.of_y, expected.of_y));
  EXPECT_TRUE(at::equal(found.of_weight, expected.of_weight));
}

TEST(Recomputed, WeightsGetGradientsThoughNoInputNeedsOne) {
  const at::Tensor x = at::ones({2}), weight = at::ones({2}).requires_grad_(true);
  const TensorFunction f = [&](const std::vector<at::Tensor>& in) { return std::vector<at::Tensor>{in[0] * weight}; };
  recomputed(f, {x})[0].sum().backward();
  EXPECT_TRUE(at::equal(weight.grad(), at::ones({2})));
  EXPECT_FALSE(x.grad().defined());
  const at::NoGradGuard no_gradients;
  EXPECT_FALSE(recomputed(f, {x})[0].requires_grad());
}

TEST(Recomputed, WhatTheFunctionThrowsReachesTheCaller) {
  const TensorFunction f = [](const std::vector<at::Tensor>&) -> std::vector<at::Tensor> {
    throw std::runtime_error("no");
  };
  EXPECT_THROW(recomputed(f, {at::ones({1})}), std::runtime_error);
}

}  // namespace recomputed_test
}  // namespace gainlens::kernels
