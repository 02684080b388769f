// Variances and gradients against tests/golden/estimators.json, which make_estimators_golden.py makes beside it.
#include "bft/observation_variance.h"
#include "core/json.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace gainlens::bft {
namespace estimators_golden_test {

using at::Tensor;

Json golden() {
  return read_json_file(std::filesystem::path(GAINLENS_SOURCE_DIR) / "tests/golden/estimators.json");
}

std::vector<double> numbers(const Json& json) {
  std::vector<double> found;
  for (const Json& number : json)
    found.push_back(number.is_null() ? std::numeric_limits<double>::quiet_NaN() : number.get<double>());
  return found;
}

Tensor tensor(const Json& json, at::IntArrayRef shape) {
  return at::tensor(numbers(json), at::kDouble).reshape(shape);
}

/// One case of the file, as tensors.
struct GoldenCase {
  GoldenCase(const Json& entry, const Json& shape)
      : batch(shape.at("batch")),
        heads(shape.at("heads")),
        keys(shape.at("keys")),
        dimensions(shape.at("dimensions")),
        model(shape.at("model")) {
    attention.weights = tensor(entry.at("weights"), {batch, heads, keys, keys});
    attention.values = tensor(entry.at("values"), {batch, heads, keys, dimensions});
    visible = at::tensor(std::vector<int>(entry.at("visible").begin(), entry.at("visible").end()))
                  .reshape({batch, heads, keys, keys})
                  .to(at::kBool);
    noise.query = tensor(entry.at("query"), {batch, heads, keys, dimensions});
    noise.key_projection = tensor(entry.at("key_projection"), {heads, dimensions, model});
    noise.value_projection = tensor(entry.at("value_projection"), {heads, dimensions, model});
    noise.token_precision = tensor(entry.at("token_precision"), {batch, keys});
    upstream = tensor(entry.at("upstream"), {batch, heads, keys, dimensions});
    if (!entry.at("causal").get<bool>()) attention.visible = visible;  // else prefix sums are tested
    options.prior_strength = entry.at("nu");
    options.prior_variance = entry.at("prior").get<double>();
    options.score_noise = entry.at("omega").get<double>();
  }

  std::int64_t batch, heads, keys, dimensions, model;
  AttentionWeights attention;
  Tensor visible;
  NoisyTokens noise;
  Tensor upstream;
  EstimatorOptions options;
};

/// max |a - b| / max(|b|, 1e-3 max |b|); NaN has to stand in the same places.
double relative_error(const Tensor& found, const Tensor& expected) {
  if (!at::equal(found.isnan(), expected.isnan())) return std::numeric_limits<double>::infinity();
  const Tensor a = at::nan_to_num(found), b = at::nan_to_num(expected);
  const Tensor scale = b.abs().clamp_min(1e-3 * b.abs().max().item<double>()).clamp_min(1e-12);
  return ((a - b).abs() / scale).max().item<double>();
}

std::vector<double> row(const Tensor& tensor) {
  const Tensor flat = tensor.contiguous().flatten();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

/// observe() on every query: [batch, head, query, dimension].
Tensor observed(Estimator estimator, const GoldenCase& golden) {
  Tensor found = at::empty_like(golden.upstream);
  for (std::int64_t b = 0; b < golden.batch; ++b) {
    for (std::int64_t h = 0; h < golden.heads; ++h) {
      for (std::int64_t t = 0; t < golden.keys; ++t) {
        const Tensor seen = golden.visible[b][h][t].nonzero().flatten();
        const auto weights = row(golden.attention.weights[b][h][t].index_select(0, seen));
        const auto values = row(golden.attention.values[b][h].index_select(0, seen));
        const auto gradient = row(golden.noise.query[b][h][t].matmul(golden.noise.key_projection[h]) /
                                  std::sqrt(static_cast<double>(golden.dimensions)));
        const auto rows = row(golden.noise.value_projection[h]);
        const auto precision = row(golden.noise.token_precision[b].index_select(0, seen));
        const TokenNoise noise{gradient, rows, precision};
        const Observation one =
            observe(estimator, {weights, values, static_cast<std::size_t>(golden.dimensions)}, golden.options, &noise);
        found[b][h][t].copy_(at::tensor(one.variance, at::kDouble));
      }
    }
  }
  return found;
}

TEST(EstimatorsGolden, EveryEstimatorHasCases) {
  const Json file = golden();
  ASSERT_EQ(file.at("cases").size(), 5u);
  for (const Estimator estimator : all_estimators) {
    int cases = 0;
    for (const Json& entry : file.at("cases")) cases += entry.at("estimators").contains(name_of(estimator)) ? 1 : 0;
    EXPECT_EQ(cases, estimator == Estimator::sandwich ? 5 : 4) << name_of(estimator);
  }
}

TEST(EstimatorsGolden, VariancesOfSingleQueriesAndOfTensors) {
  const Json file = golden();
  for (const Json& entry : file.at("cases")) {
    const GoldenCase one(entry, file.at("shape"));
    for (const auto& [name, expected] : entry.at("estimators").items()) {
      const Estimator estimator = parse_estimator(name, "golden");
      const Tensor variance = tensor(expected.at("variance"), one.upstream.sizes());
      const std::string where = entry.at("name").get<std::string>() + ", " + name;
      EXPECT_LT(relative_error(observed(estimator, one), variance), 1e-12) << where;
      const Tensor of_tensors = observation_variance(estimator, one.attention, one.options, &one.noise);
      EXPECT_LT(relative_error(of_tensors, variance), 1e-9) << where;
    }
  }
}

TEST(EstimatorsGolden, Gradients) {
  const Json file = golden();
  for (const Json& entry : file.at("cases")) {
    for (const auto& [name, expected] : entry.at("estimators").items()) {
      GoldenCase one(entry, file.at("shape"));
      std::vector<std::pair<std::string, Tensor*>> leaves = {{"weights", &one.attention.weights},
                                                             {"values", &one.attention.values},
                                                             {"query", &one.noise.query},
                                                             {"key_projection", &one.noise.key_projection},
                                                             {"value_projection", &one.noise.value_projection}};
      for (auto& leaf : leaves) leaf.second->requires_grad_();
      const Tensor variance =
          observation_variance(parse_estimator(name, "golden"), one.attention, one.options, &one.noise);
      const Tensor defined = variance.isnan().logical_not();
      (variance.masked_select(defined) * one.upstream.masked_select(defined)).sum().backward();
      for (const auto& [leaf, found] : leaves) {
        const std::string where = entry.at("name").get<std::string>() + ", " + name + ", " + leaf;
        ASSERT_EQ(found->grad().defined(), expected.contains("gradient_" + leaf)) << where;
        if (!found->grad().defined()) continue;
        const Tensor gradient = tensor(expected.at("gradient_" + leaf), found->sizes());
        EXPECT_LT(relative_error(found->grad(), gradient), 1e-7) << where;
      }
    }
  }
}

}  // namespace estimators_golden_test
}  // namespace gainlens::bft
