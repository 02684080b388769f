#include "kernels/linear/linear.h"

#include "core/error.h"
#include "kernels/exact_activation.h"
#include "kernels/vector_targets.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace gainlens::kernels {
namespace linear_test {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Shape {
  std::int64_t rows, inputs, outputs;
};

/// From a single number to more than one block of rows, of inputs and of panels; with and without a remainder.
const std::vector<Shape> shapes = {{1, 1, 1},     {1, 640, 5},    {3, 2, 64},      {7, 37, 50},   {12, 256, 32},
                                   {13, 258, 33}, {192, 64, 128}, {200, 1030, 70}, {385, 30, 129}};

const std::vector<at::ScalarType> types = {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf};

std::vector<ProductKernel> kernels_of(at::ScalarType type, std::int64_t inputs) {
  std::vector<ProductKernel> found;
  for (const ProductKernel kernel : {ProductKernel::strips, ProductKernel::widened_strips, ProductKernel::pair_strips,
                                     ProductKernel::brgemm, ProductKernel::libtorch}) {
    if (!runs_here(kernel, type)) continue;
    const bool pairs = kernel == ProductKernel::brgemm || kernel == ProductKernel::pair_strips;
    if (pairs && type == at::kBFloat16 && inputs % 2 != 0) continue;
    found.push_back(kernel);
  }
  return found;
}

/// Calls work(type, kernel, shape) for everything that this machine can do.
template <typename Work>
void for_everything(const Work& work) {
  for (const at::ScalarType type : types) {
    for (const Shape& shape : shapes) {
      for (const ProductKernel kernel : kernels_of(type, shape.inputs)) {
        SCOPED_TRACE(std::string(name_of(kernel)) + " " + c10::toString(type) + " " + std::to_string(shape.rows) +
                     " x " + std::to_string(shape.inputs) + " x " + std::to_string(shape.outputs));
        work(type, kernel, shape);
      }
    }
  }
}

/// Half a unit in the last place of a result near 1, and the rounding of a sum in float32.
double tolerance(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return 1e-14;
    case at::kFloat:
      return 3e-6;
    case at::kBFloat16:
      return 4.5e-3;
    default:
      return 7e-4;
  }
}

double largest_difference(const at::Tensor& found, const at::Tensor& expected) {
  return ((found.to(at::kDouble) - expected).abs() / expected.abs().max().clamp_min(1)).max().item<double>();
}

class Linear : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(3); }

  static at::Tensor numbers(at::IntArrayRef sizes, at::ScalarType type) {
    return at::randn(sizes, at::kDouble).to(type);
  }
};

TEST_F(Linear, EveryKernelAgreesWithFloat64) {
  for_everything([](at::ScalarType type, ProductKernel kernel, const Shape& shape) {
    const at::Tensor input = numbers({shape.rows, shape.inputs}, type);
    const at::Tensor weight = numbers({shape.outputs, shape.inputs}, type) / std::sqrt(shape.inputs);
    const at::Tensor bias = numbers({shape.outputs}, type), residual = numbers({shape.rows, shape.outputs}, type);
    const PackedWeight packed(weight, kernel);
    const at::Tensor exact = at::linear(input.to(at::kDouble), weight.to(at::kDouble));
    const at::Tensor biased = exact + bias.to(at::kDouble);
    EXPECT_LT(largest_difference(linear(input, packed), exact), tolerance(type));
    EXPECT_LT(largest_difference(linear(input, packed, {.bias = bias}), biased), tolerance(type));
    EXPECT_LT(
        largest_difference(linear(input, packed, {.bias = bias, .activation = Activation::gelu_erf}), at::gelu(biased)),
        2 * tolerance(type));  // libtorch rounds what enters the activation
    EXPECT_LT(largest_difference(linear(input, packed, {.bias = bias, .residual = residual}),
                                 biased + residual.to(at::kDouble)),
              2 * tolerance(type));  // libtorch rounds the product before it is added
  });
}

TEST_F(Linear, AGatedLayerAgreesWithFloat64) {
  for_everything([](at::ScalarType type, ProductKernel kernel, const Shape& shape) {
    const at::Tensor input = numbers({shape.rows, shape.inputs}, type);
    const at::Tensor gate = numbers({shape.outputs, shape.inputs}, type) / std::sqrt(shape.inputs),
                     up = numbers({shape.outputs, shape.inputs}, type) / std::sqrt(shape.inputs),
                     bias = numbers({shape.outputs}, type);
    const PackedWeight packed_gate(gate, kernel), packed_up(up, kernel);
    const at::Tensor g = at::linear(input.to(at::kDouble), gate.to(at::kDouble), bias.to(at::kDouble)),
                     u = at::linear(input.to(at::kDouble), up.to(at::kDouble));
    EXPECT_LT(
        largest_difference(gated_linear(input, packed_gate, packed_up, bias, {}, {.activation = Activation::gelu_tanh}),
                           at::gelu(g, "tanh") * u),
        3 * tolerance(type));
    const GateFunction clipped{.clipped = true, .limit = 0.5, .alpha = 1.7};
    const at::Tensor c = g.clamp_max(0.5);
    EXPECT_LT(largest_difference(gated_linear(input, packed_gate, packed_up, bias, bias, clipped),
                                 ((u + bias.to(at::kDouble)).clamp(-0.5, 0.5) + 1) * c * at::sigmoid(1.7 * c)),
              3 * tolerance(type));
    if (type == at::kFloat && kernel != ProductKernel::libtorch) {
      const at::Tensor apart = gated(linear(input, packed_gate, {.bias = bias}), linear(input, packed_up), {});
      EXPECT_TRUE(at::equal(apart, gated_linear(input, packed_gate, packed_up, bias, {}, {})));
    }
  });
}

TEST_F(Linear, ARowDependsNeitherOnOtherRowsNorOnThreads) {
  const int threads = at::get_num_threads();
  for_everything([](at::ScalarType type, ProductKernel kernel, const Shape& shape) {
    if (kernel == ProductKernel::libtorch) return;  // its products may depend on the number of rows
    const at::Tensor input = numbers({shape.rows, shape.inputs}, type);
    const PackedWeight weight(numbers({shape.outputs, shape.inputs}, type), kernel);
    at::set_num_threads(1);
    const at::Tensor all = linear(input, weight);
    const at::Tensor targets = at::arange(shape.rows, at::kLong).remainder(shape.outputs);
    const at::Tensor losses = target_losses(input, weight, targets);
    at::set_num_threads(3);
    EXPECT_TRUE(at::equal(all, linear(input, weight)));
    EXPECT_TRUE(at::equal(losses, target_losses(input, weight, targets)));
    for (const std::int64_t row : {std::int64_t{0}, shape.rows / 2, shape.rows - 1}) {
      EXPECT_TRUE(at::equal(all.slice(0, row, row + 1), linear(input.slice(0, row, row + 1), weight))) << row;
      EXPECT_TRUE(at::equal(losses.slice(0, row, row + 1),
                            target_losses(input.slice(0, row, row + 1), weight, targets.slice(0, row, row + 1))))
          << row;
    }
  });
  at::set_num_threads(threads);
}

TEST_F(Linear, EveryInstructionSetOfTheMachineIsRight) {
  const at::Tensor input = numbers({30, 70}, at::kFloat), weight = numbers({75, 70}, at::kFloat);
  const at::Tensor exact = at::linear(input.to(at::kDouble), weight.to(at::kDouble));
  testing::for_each_instruction_set([&](const char* target) {
    SCOPED_TRACE(target);
    EXPECT_LT(largest_difference(linear(input, PackedWeight(weight, ProductKernel::strips)), exact), 1e-6);
    for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
      const PackedWeight narrow(weight.to(type), ProductKernel::widened_strips);
      const at::Tensor found = linear(input.to(type), narrow);
      const at::Tensor expected = at::linear(input.to(type).to(at::kDouble), weight.to(type).to(at::kDouble));
      // Rounded to nearest: the same as libtorch's rounding but for sums beside the middle of two numbers.
      EXPECT_LT((found != expected.to(type)).sum().item<std::int64_t>(), found.numel() / 50);
      EXPECT_TRUE(at::equal(narrow.plain(), weight.to(type)));
    }
    const at::Tensor targets = at::arange(30, at::kLong);
    EXPECT_LT(largest_difference(target_losses(input, PackedWeight(weight, ProductKernel::strips), targets, 5),
                                 at::cross_entropy_loss(5 * at::tanh(exact / 5), targets, {}, at::Reduction::None)),
              1e-6);
  });
}

TEST_F(Linear, InputsOutputsAndResidualsMayBeViews) {
  const at::Tensor wide = numbers({5, 9, 80}, at::kFloat);
  const at::Tensor input = wide.slice(-1, 3, 43);  // rows 80 apart
  const at::Tensor weight = numbers({24, 40}, at::kFloat);
  const PackedWeight packed(weight.clone());
  const at::Tensor expected = linear(input.contiguous(), packed);
  EXPECT_TRUE(at::equal(linear(input, packed), expected));
  EXPECT_TRUE(at::equal(linear(input.transpose(0, 1), packed), expected.transpose(0, 1)));
  EXPECT_TRUE(at::equal(linear(input[0][0], packed), expected[0][0]));
  const at::Tensor columns_first = weight.t().contiguous().t();
  EXPECT_TRUE(at::equal(linear(input, PackedWeight(columns_first)), expected));

  // The residual may be the output itself, and a view.
  const at::Tensor stream = numbers({5, 9, 48}, at::kFloat);
  at::Tensor sum = stream.slice(-1, 0, 24).contiguous();
  const at::Tensor want = linear(input, packed, {.residual = stream.slice(-1, 0, 24)});
  linear(input, packed, {.residual = sum, .output = sum});
  EXPECT_TRUE(at::equal(sum, want));
}

TEST_F(Linear, APackedWeightGivesItsRowsBack) {
  for_everything([](at::ScalarType type, ProductKernel kernel, const Shape& shape) {
    const at::Tensor weight = numbers({shape.outputs, shape.inputs}, type);
    const PackedWeight packed(weight, kernel);
    EXPECT_TRUE(at::equal(packed.plain(), weight));
    const at::Tensor ids = at::tensor({std::int64_t{0}, shape.outputs - 1, shape.outputs / 2}).view({1, 3});
    EXPECT_TRUE(at::equal(packed.rows(ids), weight.index({ids})));
  });
}

TEST_F(Linear, AWeightOfItsOwnIsPackedInPlaceASharedOneIsNot) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    at::Tensor weight = numbers({130, 36}, type);
    const at::Tensor copy = weight.clone();
    const void* const memory = weight.const_data_ptr();
    const PackedWeight shared(weight);
    EXPECT_TRUE(at::equal(weight, copy));
    EXPECT_NE(static_cast<const void*>(shared.panel(0)), memory);
    const PackedWeight alone(std::move(weight));
    EXPECT_EQ(static_cast<const void*>(alone.panel(0)), memory);
    EXPECT_TRUE(at::equal(alone.plain(), copy));
    at::Tensor stack = numbers({3, 128, 32}, type);  // each part begins at a multiple of 64 bytes
    const at::Tensor whole = stack.clone();
    for (std::int64_t part = 0; part < 3; ++part) {
      const PackedWeight packed = PackedWeight::in_memory_of(stack[part]);
      EXPECT_EQ(static_cast<const void*>(packed.panel(0)), stack[part].const_data_ptr());
      EXPECT_TRUE(at::equal(packed.plain(), whole[part]));
    }
  }
}

TEST_F(Linear, NoRowsGiveNoResults) {
  for (const at::ScalarType type : types) {
    const PackedWeight weight(numbers({6, 4}, type));
    EXPECT_EQ(linear(at::empty({0, 4}, type), weight).sizes(), at::IntArrayRef({0, 6}));
    EXPECT_EQ(gated_linear(at::empty({0, 4}, type), weight, weight, {}, {}, {}).sizes(), at::IntArrayRef({0, 6}));
    EXPECT_EQ(target_losses(at::empty({0, 4}, type), weight, at::empty({0}, at::kLong)).numel(), 0);
  }
}

TEST_F(Linear, APartOfALargerTensorIsPackedIntoACopy) {
  for (const ProductKernel kernel : kernels_of(at::kFloat, 36)) {
    if (kernel == ProductKernel::libtorch) continue;
    // The part begins at no multiple of a vector, and its storage holds more than the part.
    const at::Tensor exact = numbers({130 * 36}, at::kFloat);
    at::Tensor part = at::cat({at::zeros({1}), exact}).slice(0, 1).view({130, 36});
    const void* const memory = part.const_data_ptr();
    const PackedWeight packed(std::move(part), kernel);
    EXPECT_NE(static_cast<const void*>(packed.panel(0)), memory);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(packed.panel(0)) % 64, 0u);
    EXPECT_TRUE(at::equal(packed.plain(), exact.view({130, 36})));
    const at::Tensor input = numbers({3, 36}, at::kFloat);
    EXPECT_LT(largest_difference(linear(input, packed), at::linear(input, exact.view({130, 36})).to(at::kDouble)),
              3e-6);
  }
}

const std::vector<Activation> activations = {Activation::none,     Activation::silu, Activation::gelu_tanh,
                                             Activation::gelu_erf, Activation::relu, Activation::squared_relu};

TEST_F(Linear, ActivationsAreWithinAFewUnitsOfTheLastPlace) {
  const at::Tensor x = at::cat({at::linspace(-12, 12, 100001, at::kFloat), at::logspace(-30, 1, 999, 10, at::kFloat)});
  testing::for_each_instruction_set([&](const char* target) {
    for (const Activation activation : activations) {
      const at::Tensor exact = exact_activation(x.to(at::kDouble), activation);
      const at::Tensor error = (activated(x, activation).to(at::kDouble) - exact).abs();
      // Below 0 the exact GELU is the small difference of two numbers of the size of x.
      const at::Tensor size = at::max(exact.abs(), x.to(at::kDouble).abs() * 0.1);
      EXPECT_LT((error / size.clamp_min(1e-37)).max().item<double>(), 1.3e-6) << static_cast<int>(activation) << target;
    }
  });
}

TEST_F(Linear, ActivationsOfExtremesAreThoseOfLibtorch) {
  const at::Tensor x =
      at::tensor({-3e38, -200.0, -90.0, -0.0, 0.0, 90.0, 200.0, 1e30, std::numeric_limits<double>::quiet_NaN()})
          .to(at::kFloat);
  for (const Activation activation : activations) {
    const at::Tensor found = activated(x, activation), expected = exact_activation(x, activation);
    EXPECT_TRUE(at::allclose(found, expected, 1e-5, 1e-30, /*equal_nan=*/true))
        << static_cast<int>(activation) << found << expected;
  }
}

TEST_F(Linear, LossesAreThoseOfFloat64) {
  for_everything([](at::ScalarType type, ProductKernel kernel, const Shape& shape) {
    const at::Tensor input = numbers({shape.rows, shape.inputs}, type);
    const at::Tensor weight = numbers({shape.outputs, shape.inputs}, type);
    const at::Tensor targets = at::arange(shape.rows, at::kLong).remainder(shape.outputs);
    const at::Tensor logits = at::linear(input.to(at::kDouble), weight.to(at::kDouble));
    for (const double cap : {0.0, 3.0}) {
      const at::Tensor capped = cap == 0 ? logits : cap * at::tanh(logits / cap);
      const at::Tensor expected = at::cross_entropy_loss(capped, targets, {}, at::Reduction::None);
      const at::Tensor found = target_losses(input, PackedWeight(weight, kernel), targets, cap);
      EXPECT_EQ(found.scalar_type(), at::kDouble);
      // libtorch rounds logits to the type; the other kernels keep them in float32.
      const double room = kernel == ProductKernel::libtorch ? tolerance(type) : std::min(tolerance(type), 3e-6);
      EXPECT_LT(largest_difference(found, expected), 4 * room * (1 + logits.abs().max().item<double>()));
    }
  });
}

TEST_F(Linear, ALargeVocabularyIsSummedInSegments) {
  const at::Tensor input = numbers({20, 8}, at::kFloat), weight = numbers({40000, 8}, at::kFloat);
  const at::Tensor targets = at::arange(20, at::kLong) * 2100;
  const at::Tensor expected = at::cross_entropy_loss(at::linear(input.to(at::kDouble), weight.to(at::kDouble)), targets,
                                                     {}, at::Reduction::None);
  for (const ProductKernel kernel : kernels_of(at::kFloat, 8)) {
    const at::Tensor found = target_losses(input, PackedWeight(weight, kernel), targets);
    EXPECT_LT((found - expected).abs().max().item<double>(), 1e-5) << name_of(kernel);
  }
}

TEST_F(Linear, LogitsThatAreNotFiniteGiveNaNInTheirRowAlone) {
  for (const ProductKernel kernel : kernels_of(at::kFloat, 4)) {
    for (const double bad : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
      at::Tensor input = at::ones({3, 4}), weight = at::ones({300, 4});
      input[1][2] = bad;
      const at::Tensor losses = target_losses(input, PackedWeight(weight, kernel), at::zeros({3}, at::kLong));
      EXPECT_NEAR(losses[0].item<double>(), std::log(300.0), 1e-6);
      EXPECT_TRUE(std::isnan(losses[1].item<double>())) << name_of(kernel) << bad;
      EXPECT_NEAR(losses[2].item<double>(), std::log(300.0), 1e-6);
    }
    // Logits far apart: the loss is their distance.
    const at::Tensor weight = at::tensor({1e4F, -1e4F}).view({2, 1});
    EXPECT_DOUBLE_EQ(
        target_losses(at::ones({1, 1}), PackedWeight(weight, kernel), at::ones({1}, at::kLong)).item<double>(), 2e4);
  }
}

TEST_F(Linear, WhatDoesNotFitIsOurMistake) {
  const PackedWeight weight(numbers({6, 4}, at::kFloat));
  const at::Tensor input = numbers({3, 4}, at::kFloat);
  EXPECT_THROW(linear(numbers({3, 5}, at::kFloat), weight), InternalError);
  EXPECT_THROW(linear(input.to(at::kHalf), weight), InternalError);
  EXPECT_THROW(linear(input, PackedWeight()), InternalError);
  EXPECT_THROW(linear(input, weight, {.bias = at::zeros({5})}), InternalError);
  EXPECT_THROW(linear(input, weight, {.residual = at::zeros({3, 5})}), InternalError);
  EXPECT_THROW(linear(input.clone().requires_grad_(true), weight), InternalError);
  EXPECT_THROW(linear(input, weight, {.residual = at::zeros({3, 6}).requires_grad_(true)}), InternalError);
  EXPECT_THROW(linear(input, weight, {.bias = at::zeros({6}).requires_grad_(true)}), InternalError);
  EXPECT_THROW(target_losses(input.clone().requires_grad_(true), weight, at::zeros({3}, at::kLong)), InternalError);
  for (const ProductKernel kernel : {ProductKernel::libtorch, weight.kernel()}) {
    const PackedWeight each(numbers({6, 4}, at::kFloat), kernel);
    EXPECT_THROW(linear(numbers({3, 4}, at::kFloat), each, {.bias = at::zeros({5})}), InternalError);
    EXPECT_THROW(target_losses(numbers({3, 4}, at::kFloat), each, at::full({3}, 6, at::kLong)), InternalError);
  }
  EXPECT_THROW(PackedWeight(numbers({4}, at::kFloat)), InternalError);
  EXPECT_THROW(PackedWeight(numbers({4, 4}, at::kFloat), ProductKernel::widened_strips), InternalError);
  EXPECT_THROW(PackedWeight(numbers({4, 3}, at::kBFloat16), ProductKernel::strips), InternalError);
  EXPECT_THROW(target_losses(input, weight, at::full({3}, 6, at::kLong)), InternalError);
  EXPECT_THROW(weight.rows(at::full({1}, -1, at::kLong)), InternalError);
}

TEST_F(Linear, TheKernelOfAProcessorIsWrittenDown) {
  EXPECT_EQ(product_kernel(at::kDouble), ProductKernel::libtorch);
  EXPECT_NE(product_kernel(at::kFloat), ProductKernel::libtorch);
  for (const at::ScalarType type : types) EXPECT_TRUE(runs_here(product_kernel(type), type));
  EXPECT_FALSE(runs_here(ProductKernel::strips, at::kHalf));
  const auto expected = [](at::ScalarType type, ProductKernel other) {
    return runs_here(ProductKernel::brgemm, type) ? ProductKernel::brgemm : other;
  };
  EXPECT_EQ(product_kernel(at::kFloat), expected(at::kFloat, ProductKernel::strips));
  const bool pairs = runs_here(ProductKernel::pair_strips, at::kBFloat16);
  EXPECT_EQ(product_kernel(at::kBFloat16),
            expected(at::kBFloat16, pairs ? ProductKernel::pair_strips : ProductKernel::widened_strips));
  EXPECT_EQ(product_kernel(at::kHalf), ProductKernel::widened_strips);
  EXPECT_THAT(describe_processor(), ::testing::HasSubstr("products: float32 by "));
}

}  // namespace linear_test
}  // namespace gainlens::kernels
