#include "training/adamw.h"

#include "core/error.h"
#include "core/json.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace gainlens::training {
namespace adamw_test {

at::Tensor leaf(at::Tensor values) {
  return values.set_requires_grad(true);
}

std::vector<double> values_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().flatten().contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

/// The parameters and gradients that make_adamw_golden.py uses.
struct Fixture {
  at::Tensor matrix = leaf(at::linspace(-1, 1, 6, at::kDouble).view({2, 3}).clone());
  at::Tensor vector = leaf(at::tensor({0.5, -2.0}, at::kDouble));
  AdamW optimizer{{{"matrices", {{"matrix", matrix}}, 1, 0.1}, {"vectors", {{"vector", vector}}, 2, 0}},
                  {.learning_rate = 0.01}};

  void step(int number) {
    matrix.mutable_grad() = at::sin(at::arange(6, at::kDouble) + number).view({2, 3});
    vector.mutable_grad() = at::cos(at::arange(2, at::kDouble) * 3 - number);
    optimizer.step(1 - 0.1 * number);
  }
};

/// Names of the parameters of a group.
std::vector<std::string> names_of(const ParameterGroup& group) {
  std::vector<std::string> names;
  for (const models::NamedTensor& parameter : group.parameters) names.push_back(parameter.name);
  return names;
}

TEST(ParameterGroups, DecayMatricesAloneAndGivePrecisionsTheirLearningRate) {
  using Names = std::vector<std::string>;
  const std::vector<models::NamedTensor> weights{
      {"bias", leaf(at::ones({3}))}, {"matrix", leaf(at::ones({3, 1}))}, {"cube", leaf(at::ones({1, 1, 2}))}};
  const std::vector<models::NamedTensor> precisions{{"slope", leaf(at::ones({2, 2}))}};
  const std::vector<ParameterGroup> groups = parameter_groups(weights, precisions, 0.1, 7);
  ASSERT_EQ(groups.size(), 3);
  EXPECT_EQ(names_of(groups[0]), (Names{"matrix", "cube"}));
  EXPECT_EQ(names_of(groups[1]), Names{"bias"});
  EXPECT_EQ(names_of(groups[2]), Names{"slope"});
  EXPECT_TRUE(groups[2].parameters[0].tensor.is_same(precisions[0].tensor));
  const std::vector<double> decays{0.1, 0, 0}, factors{1, 1, 7};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    EXPECT_EQ(groups[i].weight_decay, decays[i]) << groups[i].name;
    EXPECT_EQ(groups[i].learning_rate_factor, factors[i]) << groups[i].name;
  }
  EXPECT_EQ(parameter_groups(weights, {}, 0.1, 7).size(), 2);
}

TEST(MissingGradients, AreZerosAndThoseThatAreThereStay) {
  const std::vector<models::NamedTensor> parameters{{"a", leaf(at::ones({2}))}, {"b", leaf(at::ones({2, 3}))}};
  const at::Tensor own = at::full({2}, 5.0);
  parameters[0].tensor.mutable_grad() = own;
  give_missing_gradients(parameters);
  EXPECT_TRUE(parameters[0].tensor.grad().is_same(own));
  EXPECT_TRUE(at::equal(own, at::full({2}, 5.0)));
  EXPECT_TRUE(at::equal(parameters[1].tensor.grad(), at::zeros({2, 3})));
}

TEST(AdamW, EqualsTheReferenceStepByStep) {
  const Json golden = read_json_file(GAINLENS_SOURCE_DIR "/tests/training/adamw_golden.json");
  Fixture fixture;
  for (int step = 0; step < 5; ++step) {
    fixture.step(step);
    for (const auto& [name, tensor] : {std::pair{"matrix", fixture.matrix}, std::pair{"vector", fixture.vector}}) {
      const auto expected = golden["steps"][static_cast<std::size_t>(step)][name].get<std::vector<double>>();
      const auto found = values_of(tensor);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], expected[i], 1e-12) << name << " after step " << step;
    }
  }
}

TEST(AdamW, GoesOnFromItsStateWithTheSameBits) {
  Fixture whole, first, second;
  for (int step = 0; step < 4; ++step) whole.step(step);
  for (int step = 0; step < 2; ++step) first.step(step);
  second.optimizer.restore(first.optimizer.state(), 2);
  for (int step = 2; step < 4; ++step) second.step(step);
  EXPECT_TRUE(at::equal(whole.matrix, second.matrix));
  EXPECT_TRUE(at::equal(whole.vector, second.vector));
}

/// Two groups of parameters of 6, 0, 5 and 2 elements.
std::vector<ParameterGroup> uneven_groups() {
  return {{"first", {{"a", leaf(at::zeros({2, 3}))}, {"none", leaf(at::zeros({0}))}}},
          {"second", {{"b", leaf(at::zeros({5}))}, {"c", leaf(at::zeros({2}))}}}};
}

TEST(ParameterPieces, CoverEveryElementOnceAndAreBalanced) {
  const std::vector<ParameterGroup> groups = uneven_groups();
  for (const std::int64_t size : {1, 2, 3, 4, 13, 20}) {
    std::vector<at::Tensor> counts{at::zeros({2, 3}), at::zeros({0}), at::zeros({5}), at::zeros({2})};
    for (std::int64_t rank = 0; rank < size; ++rank) {
      std::int64_t elements = 0;
      for (const ParameterPiece& piece : pieces_of(groups, {rank, size})) {
        piece.of(counts[2 * piece.group + piece.index]).add_(1);
        elements += piece.count;
      }
      EXPECT_GE(elements, 13 / size);
      EXPECT_LE(elements, (13 + size - 1) / size);
    }
    for (const at::Tensor& count : counts) EXPECT_TRUE(at::equal(count, at::ones_like(count))) << size;
  }
}

TEST(AdamW, OfAShareStepsItAlone) {
  Fixture whole, divided;
  const std::vector<ParameterGroup> groups{{"matrices", {{"matrix", divided.matrix}}, 1, 0.1},
                                           {"vectors", {{"vector", divided.vector}}, 2, 0}};
  std::vector<AdamW> parts;
  for (std::int64_t rank = 0; rank < 3; ++rank)
    parts.emplace_back(groups, AdamWOptions{.learning_rate = 0.01}, ParameterShare{rank, 3});
  EXPECT_EQ(parts[0].moments().size(), 2u);
  EXPECT_EQ(parts[0].moments()[0].numel(), 3);  // of 8 elements
  EXPECT_THROW(parts[0].state(), InternalError);
  for (int number = 0; number < 4; ++number) {
    whole.step(number);
    divided.matrix.mutable_grad() = whole.matrix.grad().clone();
    divided.vector.mutable_grad() = whole.vector.grad().clone();
    for (AdamW& part : parts) part.step(1 - 0.1 * number);
  }
  EXPECT_LT((divided.matrix - whole.matrix).abs().max().item<double>(), 1e-14);
  EXPECT_LT((divided.vector - whole.vector).abs().max().item<double>(), 1e-14);
  // A share is restored from the state of all.
  AdamW again(groups, {.learning_rate = 0.01}, {1, 3});
  again.restore(whole.optimizer.state(), 4);
  for (std::size_t i = 0; i < again.moments().size(); ++i)
    EXPECT_LT((again.moments()[i] - parts[1].moments()[i]).abs().max().item<double>(), 1e-14) << i;
}

TEST(AdamW, ClipsAllGradientsTogether) {
  Fixture fixture;
  fixture.matrix.mutable_grad() = at::full({2, 3}, 2.0, at::kDouble);
  fixture.vector.mutable_grad() = at::full({2}, 1.0, at::kDouble);
  const double norm = std::sqrt(6 * 4 + 2.0);
  EXPECT_NEAR(fixture.optimizer.clip_gradients(0), norm, 1e-12);
  EXPECT_NEAR(fixture.optimizer.clip_gradients(100), norm, 1e-12);
  EXPECT_NEAR(fixture.matrix.grad()[0][0].item<double>(), 2, 1e-15);
  fixture.optimizer.clip_gradients(1);
  EXPECT_NEAR(fixture.matrix.grad()[0][0].item<double>(), 2 / norm, 1e-12);
  EXPECT_NEAR(fixture.vector.grad()[1].item<double>(), 1 / norm, 1e-12);
}

TEST(AdamW, RefusesWhatCannotBeTrained) {
  Fixture fixture;
  fixture.matrix.mutable_grad() = at::full({2, 3}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
  fixture.vector.mutable_grad() = at::zeros({2}, at::kDouble);
  EXPECT_THROW(fixture.optimizer.clip_gradients(1), RunFailed);
  EXPECT_THROW(AdamW({}, {}), InvalidArgument);
  const at::Tensor tensor = leaf(at::zeros({1}));
  EXPECT_THROW(AdamW({{"a", {{"x", tensor}}}}, {.learning_rate = 0}), InvalidArgument);
  EXPECT_THROW(AdamW({{"a", {{"x", tensor}}}}, {.beta1 = 1}), InvalidArgument);
  EXPECT_THROW(AdamW({{"a", {{"x", tensor}, {"x", tensor}}}}, {}), InternalError);
  EXPECT_THROW(AdamW({{"a", {{"x", at::zeros({1})}}}}, {}), InternalError);
}

TEST(AdamW, RefusesAStateOfAnotherModel) {
  Fixture fixture;
  auto state = fixture.optimizer.state();
  state.erase("mean.vector");
  EXPECT_THROW(fixture.optimizer.restore(state, 1), InvalidArgument);
  state = fixture.optimizer.state();
  state["mean.other"] = at::zeros({1});
  EXPECT_THROW(fixture.optimizer.restore(state, 1), InvalidArgument);
  state = fixture.optimizer.state();
  state["parameter.vector"] = at::zeros({3}, at::kDouble);
  EXPECT_THROW(fixture.optimizer.restore(state, 1), InvalidArgument);
}

}  // namespace adamw_test
}  // namespace gainlens::training
