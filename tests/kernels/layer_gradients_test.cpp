#include "kernels/gradient/layer_gradients.h"
#include "kernels/gradient/trained_loss.h"

#include "core/error.h"
#include "kernels/exact_activation.h"
#include "kernels/gradient/trained_linear.h"
#include "kernels/linear/linear.h"

#include <ATen/ATen.h>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <vector>

namespace gainlens::kernels {
namespace layer_gradients_test {

/// Value and gradients of sum(f(inputs) * weights), where `weights` are fixed numbers.
std::vector<at::Tensor> value_and_gradients(const std::function<at::Tensor(const std::vector<at::Tensor>&)>& f,
                                            const std::vector<at::Tensor>& inputs, at::ScalarType type) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& input : inputs) leaves.push_back(input.to(type).detach().clone().requires_grad_(true));
  const at::Tensor value = f(leaves);
  at::manual_seed(9);
  (value * at::randn(value.sizes(), at::kDouble).to(type)).sum().backward();
  std::vector<at::Tensor> found{value.detach()};
  for (const at::Tensor& leaf : leaves) found.push_back(leaf.grad());
  return found;
}

/// Compares float32 with libtorch in float64.
void expect_like(const std::function<at::Tensor(const std::vector<at::Tensor>&)>& ours,
                 const std::function<at::Tensor(const std::vector<at::Tensor>&)>& exact,
                 const std::vector<at::Tensor>& inputs) {
  const auto found = value_and_gradients(ours, inputs, at::kFloat);
  const auto expected = value_and_gradients(exact, inputs, at::kDouble);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double scale = expected[i].abs().max().item<double>();
    EXPECT_LT((found[i].to(at::kDouble) - expected[i]).abs().max().item<double>(), 5e-6 * scale) << i;
  }
  EXPECT_TRUE(at::equal(found[1], value_and_gradients(ours, inputs, at::kFloat)[1]));  // the same bits again
}

at::Tensor numbers(at::IntArrayRef sizes, std::uint64_t seed) {
  at::manual_seed(seed);
  return at::randn(sizes, at::kDouble);
}

TEST(LayerGradients, NormsAreThoseOfLibtorchInFloat64) {
  for (const std::int64_t columns : {1, 7, 16, 40, 96}) {
    const std::vector<at::Tensor> inputs = {numbers({2, 300, columns}, 1) + 0.5, numbers({columns}, 2),
                                            numbers({columns}, 3)};
    expect_like(
        [](const auto& in) {
          return trained_norm(in[0], {NormKind::rms, 1e-3}, in[1], 1, in[2]);
        },
        [](const auto& in) { return in[0] * at::rsqrt(in[0].pow(2).mean(-1, true) + 1e-3) * (in[1] + 1) + in[2]; },
        inputs);
    if (columns == 1) continue;  // a layer norm of one number is 0
    expect_like(
        [](const auto& in) {
          return trained_norm(in[0], {NormKind::layer, 1e-3}, in[1], 0, in[2]);
        },
        [&](const auto& in) { return at::layer_norm(in[0], {columns}, in[1], in[2], 1e-3); }, inputs);
  }
}

TEST(LayerGradients, EachHeadMayHaveItsOwnWeight) {
  expect_like(
      [](const auto& in) {
        return trained_norm(in[0], {NormKind::layer, 1e-3}, in[1], 0, {});
      },
      [](const auto& in) { return at::layer_norm(in[0], {8}, {}, {}, 1e-3) * in[1]; },
      {numbers({1, 9, 3, 8}, 1), numbers({3, 8}, 2)});
}

TEST(LayerGradients, RotationTurnsGradientsBack) {
  const at::Tensor angle = numbers({11, 3}, 5);
  const auto exact = [&](const auto& in) {
    const at::Tensor c = angle.cos().unsqueeze(1), s = angle.sin().unsqueeze(1);
    const at::Tensor a = in[0].narrow(-1, 0, 3), b = in[0].narrow(-1, 3, 3);
    return at::cat({a * c - b * s, b * c + a * s, in[0].narrow(-1, 6, 2)}, -1);
  };
  expect_like(
      [&](const auto& in) { return trained_rotation(in[0], angle.cos().to(at::kFloat), angle.sin().to(at::kFloat)); },
      exact, {numbers({2, 11, 4, 8}, 6)});
}

TEST(LayerGradients, GatesAndActivationsAreThoseOfLibtorchInFloat64) {
  for (const Activation activation :
       {Activation::silu, Activation::gelu_tanh, Activation::gelu_erf, Activation::relu, Activation::squared_relu}) {
    SCOPED_TRACE(static_cast<int>(activation));
    const std::vector<at::Tensor> inputs = {numbers({50, 37}, 1) * 3, numbers({50, 37}, 2)};
    expect_like([&](const auto& in) { return trained_gate(in[0], in[1], activation); },
                [&](const auto& in) { return exact_activation(in[0], activation) * in[1]; }, inputs);
    expect_like([&](const auto& in) { return trained_activation(in[0], activation); },
                [&](const auto& in) { return exact_activation(in[0], activation); }, {inputs[0]});
    // The slope of the reference is that of autograd, which can differentiate it once more.
    const auto exact_slope = [&](const auto& in) {
      const at::Tensor x = in[0].requires_grad() ? in[0] : in[0].detach().requires_grad_(true);
      const at::Tensor value = exact_activation(x, activation);
      const at::Tensor slope = torch::autograd::grad({value.sum()}, {x}, {}, {}, /*create_graph=*/true)[0];
      return value * 0.3 + slope;
    };
    expect_like(
        [&](const auto& in) {
          const auto [value, slope] = trained_activation_with_slope(in[0], activation);
          return value * 0.3 + slope;
        },
        exact_slope, {inputs[0]});
  }
}

TEST(LayerGradients, LinearLayersAreThoseOfLibtorchInFloat64) {
  const at::Tensor input = numbers({2, 130, 40}, 1), weight = numbers({24, 40}, 2), other = numbers({7, 40}, 3);
  const at::Tensor bias = numbers({24}, 4), residual = numbers({2, 130, 24}, 5);
  expect_like([](const auto& in) { return trained_linear(in[0], in[1]); },
              [](const auto& in) { return at::linear(in[0], in[1]); }, {input, weight});
  expect_like([](const auto& in) { return trained_linear(in[0], in[1], in[2]); },
              [](const auto& in) { return at::linear(in[0], in[1], in[2]); }, {input, weight, bias});
  expect_like([](const auto& in) { return trained_linear(in[0], in[1], {}, in[2]); },
              [](const auto& in) { return at::linear(in[0], in[1]) + in[2]; }, {input, weight, residual});
  expect_like([](const auto& in) { return trained_linear(in[0], in[1], in[2], in[3]); },
              [](const auto& in) { return at::linear(in[0], in[1], in[2]) + in[3]; }, {input, weight, bias, residual});
  // The stream that a layer reads may be what it is added to.
  expect_like([](const auto& in) { return trained_linear(in[0], in[1], {}, in[0]); },
              [](const auto& in) { return at::linear(in[0], in[1]) + in[0]; }, {input, numbers({40, 40}, 6)});
  // Several layers, of which one has a bias; rows that are not contiguous.
  expect_like(
      [](const auto& in) {
        return at::cat(trained_linears(in[0].transpose(0, 1), {in[1], in[2], in[1]}, {{}, in[3], {}}), -1);
      },
      [](const auto& in) {
        const at::Tensor x = in[0].transpose(0, 1);
        return at::cat({at::linear(x, in[1]), at::linear(x, in[2], in[3]), at::linear(x, in[1])}, -1);
      },
      {input, weight, other, numbers({7}, 7)});
}

TEST(LayerGradients, OnlyWhatNeedsAGradientGetsOne) {
  const at::Tensor input = numbers({9, 5}, 1).to(at::kFloat), weight = numbers({4, 5}, 2).to(at::kFloat);
  const auto leaf = [](const at::Tensor& x) { return x.clone().requires_grad_(true); };
  for (int which = 0; which < 4; ++which) {
    std::vector<at::Tensor> in = {input, weight, at::ones({4}), at::ones({9, 4})};
    in[static_cast<std::size_t>(which)] = leaf(in[static_cast<std::size_t>(which)]);
    trained_linear(in[0], in[1], in[2], in[3]).sum().backward();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(in[static_cast<std::size_t>(i)].grad().defined(), i == which) << i;
  }
  // One of two outputs is not used: its weight gets no gradient, and an infinite number in it disturbs nothing.
  const at::Tensor x = leaf(input), first = leaf(weight), second = leaf(weight / 0.0);
  trained_linears(x, {first, second}, {{}, {}})[0].sum().backward();
  EXPECT_TRUE(at::allclose(first.grad(), at::ones({4, 9}).mm(input)));
  EXPECT_TRUE(at::allclose(x.grad(), at::ones({9, 4}).mm(weight)));
  EXPECT_FALSE(second.grad().defined());
}

TEST(LayerGradients, OutputsOfLinearLayersMayBeChangedInPlace) {
  const at::Tensor x = numbers({2, 9, 5}, 1).to(at::kFloat), weight = numbers({4, 5}, 2).to(at::kFloat);
  weight.requires_grad_(true);
  const at::Tensor one = trained_linear(x, weight);
  one.view({2, 9, 2, 2}).select(2, 1).zero_();
  one.mul_(2).sum().backward();
  EXPECT_TRUE(at::allclose(weight.grad().slice(0, 0, 2), 2 * at::ones({2, 18}).mm(x.view({18, 5}))));
  EXPECT_EQ(weight.grad().slice(0, 2, 4).abs().max().item<double>(), 0);
  trained_linears(x, {weight, weight}, {{}, {}})[1].mul_(3);
}

TEST(LayerGradients, LinearLayersOfNoRows) {
  const at::Tensor x = at::zeros({0, 5}).requires_grad_(true), weight = at::ones({4, 5}).requires_grad_(true);
  trained_linear(x, weight).sum().backward();
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  EXPECT_TRUE(at::equal(weight.grad(), at::zeros({4, 5})));
}

TEST(LayerGradients, LinearLayersKeepOnlyWhatAGradientNeeds) {
  const at::Tensor x = at::ones({6, 5}).requires_grad_(true), weight = at::ones({4, 5});
  const auto before = x.storage().use_count();
  const at::Tensor y = trained_linear(x, weight);
  EXPECT_EQ(x.storage().use_count(), before);
}

TEST(LayerGradients, TheLossOfBlocksIsTheLossOfAllRows) {
  at::manual_seed(4);
  const at::Tensor targets = at::randint(70, {1100}, at::kLong);
  for (const double cap : {0.0, 2.0}) {
    expect_like([&](const auto& in) { return trained_mean_loss(in[0], in[1], targets, {.soft_cap = cap}); },
                [&](const auto& in) {
                  const at::Tensor logits = at::linear(in[0], in[1]);
                  return at::cross_entropy_loss(cap == 0 ? logits : cap * at::tanh(logits / cap), targets);
                },
                {numbers({1100, 12}, 7), numbers({70, 12}, 8)});
  }
  // Transposed views.
  expect_like([&](const auto& in) { return trained_mean_loss(in[0].t(), in[1].t(), targets.slice(0, 0, 30)); },
              [&](const auto& in) { return at::cross_entropy_loss(at::mm(in[0].t(), in[1]), targets.slice(0, 0, 30)); },
              {numbers({12, 30}, 7), numbers({12, 70}, 8)});
  // Without a gradient.
  const at::NoGradGuard no_gradient;
  const at::Tensor input = numbers({5, 12}, 7).to(at::kFloat), head = numbers({70, 12}, 8).to(at::kFloat);
  const at::Tensor five = targets.slice(0, 0, 5);
  const at::Tensor exact = at::cross_entropy_loss(at::linear(input.to(at::kDouble), head.to(at::kDouble)), five);
  EXPECT_NEAR(trained_mean_loss(input, head, five).item<double>(), exact.item<double>(), 1e-5);
}

TEST(LayerGradients, SecondDerivativesAreRefused) {
  const auto refused = [](const at::Tensor& result, const at::Tensor& input) {
    EXPECT_THROW(torch::autograd::grad({result.sum()}, {input}, {}, /*retain_graph=*/true, /*create_graph=*/true),
                 InvalidArgument);
  };
  const at::Tensor x = numbers({1, 3, 2, 8}, 1).to(at::kFloat).requires_grad_(true), weight = at::ones({8});
  refused(trained_norm(x, {NormKind::rms, 1e-6}, weight, 0, {}), x);
  refused(trained_rotation(x, at::ones({3, 4}), at::zeros({3, 4})), x);
  refused(trained_gate(x, x, Activation::silu), x);
  refused(trained_activation(x, Activation::silu), x);
  refused(trained_activation_with_slope(x, Activation::silu).second, x);
  refused(trained_linear(x, at::ones({5, 8}).requires_grad_(true)), x);
  refused(trained_mean_loss(x.view({6, 8}), at::ones({5, 8}), at::zeros({6}, at::kLong)), x);
}

TEST(LayerGradients, BitsDoNotDependOnThreadsOfNorms) {
  const int threads = at::get_num_threads();
  const auto run = [](int count) {
    at::set_num_threads(count);
    return value_and_gradients(
        [](const auto& in) {
          return trained_norm(in[0], {NormKind::rms, 1e-6}, in[1], 0, {});
        },
        {numbers({900, 33}, 1), numbers({33}, 2)}, at::kFloat);
  };
  const auto one = run(1), three = run(3);
  at::set_num_threads(threads);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], three[i])) << i;
}

}  // namespace layer_gradients_test
}  // namespace gainlens::kernels
