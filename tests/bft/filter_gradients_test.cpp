// Gradients of every part of the filter against central differences in float64. The test prints the table that
// docs/bft-measurements.md sums up.
#include "bft/feedforward_jacobian.h"
#include "bft/filter_step.h"
#include "bft/filter_weights.h"
#include "bft/initial_precision.h"
#include "bft/packed_observation.h"
#include "support/central_differences.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::bft {
namespace filter_gradients_test {

using at::Tensor;
using kernels::Activation;
using testing::gradient_error;

constexpr std::int64_t rows = 4, width = 6, neurons = 10;

class Numbers {
 public:
  Tensor normal(at::IntArrayRef shape, double scale = 1) {
    return at::normal(0.0, scale, shape, generator_, at::TensorOptions().dtype(at::kDouble));
  }
  Tensor positive(at::IntArrayRef shape) { return normal(shape).square() + 0.5; }

 private:
  at::Generator generator_ = at::detail::createCPUGenerator(3);
};

/// A function of some tensors, each of which is tried.
struct Part {
  std::string name;
  std::vector<std::pair<std::string, Tensor>> inputs;
  std::function<Tensor(const std::vector<std::pair<std::string, Tensor>>&)> function;
};

/// The gradient of a sum of all elements with random weights, by each input.
/// @returns  a line of the table
std::string checked(Part part) {
  Numbers numbers;
  const Tensor upstream = numbers.normal(part.function(part.inputs).sizes());
  const auto loss = [&] { return (part.function(part.inputs) * upstream).sum(); };
  std::string line = fmt::format("{:<34}", part.name);
  for (auto& [name, tensor] : part.inputs) {
    const double error = gradient_error(tensor, loss);
    EXPECT_LT(error, 1e-7) << part.name << " by " << name;
    line += fmt::format("  {} {:.0e}", name, error);
  }
  return line;
}

using Inputs = std::vector<std::pair<std::string, Tensor>>;

/// With observed precisions that stay within the bounds, and others at them: there the gradient is 0.
FilterOptions wide() {
  FilterOptions options;
  options.most_precision = 1e6;
  return options;
}

std::vector<Part> step_parts() {
  Numbers numbers;
  const Tensor precision = numbers.positive({rows, width}), observed = numbers.positive({rows, width}),
               jacobian = numbers.normal({rows, width}, 0.3), logits = numbers.normal({width});
  FilterOptions discount = wide(), decay = wide();
  discount.predict = Predict::discount;
  decay.predict = Predict::decay;
  return {
      {"gain",
       {{"lambda", precision}, {"lambda_obs", observed}},
       [](const Inputs& x) { return gain(x[0].second, x[1].second); }},
      {"lambda_obs of least error",
       {{"lambda_obs", observed}, {"h", numbers.normal({rows, width})}},
       [](const Inputs& x) { return least_error_precision(x[0].second, x[1].second); }},
      {"posterior precision",
       {{"lambda", precision}, {"lambda_obs", observed}},
       [](const Inputs& x) { return posterior_precision(x[0].second, x[1].second, wide()); }},
      {"stretch", {{"J", jacobian}}, [](const Inputs& x) { return stretch(x[0].second); }},
      {"predict jacobian",
       {{"lambda'", precision}, {"J", jacobian}, {"Q logits", logits}},
       [](const Inputs& x) { return predicted_precision(x[0].second, stretch(x[1].second), x[2].second, wide()); }},
      {"predict discount",
       {{"lambda'", precision}, {"J", jacobian}},
       [discount](const Inputs& x) { return predicted_precision(x[0].second, stretch(x[1].second), {}, discount); }},
      {"predict decay",
       {{"lambda'", precision}, {"J", jacobian}, {"gamma logit", numbers.normal({1})}},
       [decay](const Inputs& x) { return predicted_precision(x[0].second, stretch(x[1].second), x[2].second, decay); }},
  };
}

std::vector<Part> jacobian_parts() {
  Numbers numbers;
  const Tensor up = numbers.normal({neurons, width}, 0.5), gate = numbers.normal({neurons, width}, 0.5),
               down = numbers.normal({width, neurons}, 0.5), slopes = numbers.normal({rows, neurons}),
               x = numbers.normal({rows, neurons});
  const JacobianFactors factors = jacobian_factors(up, down, 3);
  std::vector<Part> parts = {
      {"J exact",
       {{"W1", up}, {"W2", down}, {"slopes", slopes}},
       [](const Inputs& in) { return jacobian(in[0].second, in[1].second, in[2].second); }},
      {"J low rank", {{"slopes", slopes}}, [factors](const Inputs& in) { return jacobian(factors, in[0].second); }},
      {"J with the norm",
       {{"W1", up},
        {"W2", down},
        {"slopes", slopes},
        {"z", numbers.normal({rows, width})},
        {"s", numbers.positive({rows, 1})},
        {"g", numbers.normal({width})}},
       [](const Inputs& in) {
         return jacobian_with_norm(in[0].second, in[1].second, in[2].second, in[3].second, in[4].second, in[5].second);
       }},
  };
  for (const auto& [name, activation] : {std::pair("silu", Activation::silu),
                                         {"gelu_tanh", Activation::gelu_tanh},
                                         {"gelu_erf", Activation::gelu_erf},
                                         {"relu", Activation::relu},
                                         {"squared_relu", Activation::squared_relu}}) {
    const Activation own = activation;
    parts.push_back({fmt::format("J gated, {}", name),
                     {{"Wg", gate}, {"Wu", up}, {"W2", down}, {"gates", x}, {"neurons", slopes}},
                     [own](const Inputs& in) {
                       return gated_jacobian(in[0].second, in[1].second, in[2].second, in[3].second, in[4].second, own);
                     }});
    if (activation != Activation::relu) {  // its slope is constant
      parts.push_back({fmt::format("slope of {}", name), {{"x", x}}, [own](const Inputs& in) {
                         return activation_slope(in[0].second, own);
                       }});
    }
  }
  return parts;
}

std::vector<Part> precision_parts() {
  Numbers numbers;
  const Tensor base = numbers.positive({rows});
  return {{"tau of content",
           {{"W1", numbers.normal({16, width}, 0.5)},
            {"b1", numbers.normal({16})},
            {"W2", numbers.normal({1, 16}, 0.5)},
            {"b2", numbers.normal({1})},
            {"x", numbers.normal({rows, width})},
            {"range", numbers.positive({1})}},
           [base](const Inputs& in) {
             const PrecisionNetwork network{in[0].second, in[1].second, in[2].second, in[3].second};
             return initial_precision(wide(), {base, content_precision(network, in[4].second)}, in[5].second);
           }},
          {"tau of table", {{"p", numbers.normal({rows})}}, [](const Inputs& in) {
             return table_precision(in[0].second);
           }}};
}

/// Both outputs of the observation beside each other.
std::vector<Part> observation_parts() {
  constexpr std::int64_t positions = 9, heads = 2, dims = 3;
  const kernels::PackedBounds begin{0, 4, 9};
  Numbers numbers;
  std::vector<Part> parts;
  const auto add = [&](const std::string& name, const FilterOptions& filter, double strength, double dropout) {
    const HeadProjections projections{numbers.normal({heads, dims, 5}), numbers.normal({heads, dims, 5})};
    parts.push_back({name,
                     {{"q", numbers.normal({positions, heads, dims})},
                      {"k", numbers.normal({positions, heads, dims})},
                      {"v", numbers.normal({positions, heads, dims})},
                      {"lambda", numbers.positive({positions, heads * dims})},
                      {"log rho", numbers.normal({1}, 0.1)}},
                     [=](const Inputs& in) {
                       kernels::PackedAttentionOptions options{.dropout = {dropout, 7, 0}};
                       options.distance_slope = in[4].second;
                       const HeadObservation found =
                           observe_packed(in[0].second, in[1].second, in[2].second, in[3].second, begin, options,
                                          filter, strength, &projections);
                       return at::cat({found.estimate, found.precision}, 2);
                     }});
  };
  for (const Estimator estimator : all_estimators) {
    if (estimator == Estimator::reml_naive) continue;  // 0/0 at the first position
    FilterOptions filter = wide();
    filter.estimator = estimator;
    filter.most_precision = estimator == Estimator::sandwich ? 1e3 : 1e6;
    filter.score_noise = 0.4;
    add(fmt::format("observation, {}", name_of(estimator)), filter, 1, 0);
  }
  FilterOptions per_dimension = wide();
  per_dimension.kriging = Kriging::per_dimension;
  add("observation, per dimension", per_dimension, 1, 0);
  add("observation, warming up", wide(), 0.3, 0);
  add("observation, dropout", wide(), 1, 0.3);
  return parts;
}

TEST(FilterGradients, AgreeWithCentralDifferences) {
  fmt::print("Largest |gradient - central difference| over the largest |central difference|, float64\n");
  for (const auto& parts : {step_parts(), jacobian_parts(), precision_parts(), observation_parts()}) {
    for (const Part& part : parts) fmt::print("{}\n", checked(part));
  }
}

TEST(FilterGradients, AreNumbersWhereAQuerySeesOneKeyOrEqualValues) {
  for (const Estimator estimator : all_estimators) {
    if (estimator == Estimator::reml_naive) continue;
    FilterOptions filter;
    filter.estimator = estimator;
    filter.score_noise = 0.4;
    Tensor value = at::ones({4, 1, 2}, at::kDouble).requires_grad_(), query = value.detach().clone().requires_grad_(),
           key = value.detach().clone().requires_grad_();
    const HeadProjections projections{at::ones({1, 2, 2}, at::kDouble), at::ones({1, 2, 2}, at::kDouble)};
    const HeadObservation found =
        observe_packed(query, key, value, at::ones({4, 2}, at::kDouble), {0, 1, 4}, {}, filter, 1, &projections);
    EXPECT_TRUE(at::isfinite(found.precision).all().item<bool>()) << name_of(estimator);
    (found.precision.sum() + found.estimate.sum()).backward();
    for (const Tensor& leaf : {value, query, key})
      EXPECT_TRUE(at::isfinite(leaf.grad()).all().item<bool>()) << name_of(estimator);
  }
}

/// The diagonal of the Jacobian of a function of one row, by central differences.
Tensor diagonal_of(const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  const double step = 1e-6;
  Tensor diagonal = at::empty_like(x);
  for (std::int64_t i = 0; i < x.size(1); ++i) {
    Tensor above = x.clone(), below = x.clone();
    above.select(1, i).add_(step);
    below.select(1, i).sub_(step);
    diagonal.select(1, i).copy_((f(above) - f(below)).select(1, i) / (2 * step));
  }
  return diagonal;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(Jacobian, IsTheDiagonalOfTheJacobian) {
  Numbers numbers;
  const Tensor up = numbers.normal({neurons, width}, 0.5), gate = numbers.normal({neurons, width}, 0.5),
               down = numbers.normal({width, neurons}, 0.5), bias = numbers.normal({neurons}),
               x = numbers.normal({rows, width}), weight = numbers.normal({width}), shift = numbers.normal({width});
  const auto plain = [&](const Tensor& in) { return at::linear(at::gelu(at::linear(in, up, bias)), down); };
  const Tensor slopes = activation_slope(at::linear(x, up, bias), Activation::gelu_erf);
  EXPECT_LT(largest_difference(jacobian(up, down, slopes), diagonal_of(x, plain)), 1e-8);

  const auto gated = [&](const Tensor& in) {
    return at::linear(at::silu(at::linear(in, gate)) * at::linear(in, up, bias), down);
  };
  EXPECT_LT(
      largest_difference(gated_jacobian(gate, up, down, at::linear(x, gate), at::linear(x, up, bias), Activation::silu),
                         diagonal_of(x, gated)),
      1e-8);

  const double epsilon = 1e-5;
  const auto normalised = [&](const Tensor& in) {
    return (in - in.mean(1, true)) / (in.var(1, false, true) + epsilon).sqrt();
  };
  const auto with_norm = [&](const Tensor& in) { return plain(normalised(in) * weight + shift); };
  const Tensor inner = activation_slope(at::linear(normalised(x) * weight + shift, up, bias), Activation::gelu_erf);
  const Tensor deviation = (x.var(1, false, true) + epsilon).sqrt();
  EXPECT_LT(largest_difference(jacobian_with_norm(up, down, inner, normalised(x), deviation, weight),
                               diagonal_of(x, with_norm)),
            1e-8);
}

TEST(Jacobian, LowRankIsExactAtFullRankAndKeepsTheLargestPart) {
  Numbers numbers;
  const Tensor up = numbers.normal({neurons, width}), down = numbers.normal({width, neurons}),
               slopes = numbers.normal({rows, neurons});
  const Tensor exact = jacobian(up, down, slopes);
  const JacobianFactors all = jacobian_factors(up, down, 100), some = jacobian_factors(up, down, 2);
  EXPECT_LT(largest_difference(jacobian(all, slopes), exact), 1e-12);
  EXPECT_NEAR(all.kept, 1, 1e-12);
  const auto energy = [](const Tensor& x) { return x.square().sum().item<double>(); };
  const Tensor product = down * up.t();
  EXPECT_NEAR(some.kept, 1 - energy(product - at::matmul(some.left, some.right)) / energy(product), 1e-12);
  EXPECT_LT(some.kept, 1);
  EXPECT_EQ(jacobian_factors(up, at::zeros_like(down), 2).kept, 1);
}

}  // namespace filter_gradients_test
}  // namespace gainlens::bft
