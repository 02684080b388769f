#include "depth/carried_variance.h"

#include "bft/estimators.h"
#include "core/error.h"
#include "models/random_decoder.h"

#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::depth {
namespace carried_variance_test {

using models::DecoderConfig;
using runfile::DepthReading;
using ::testing::HasSubstr;
using testing::RandomWeights;
using testing::small_config;
using ::testing::ThrowsMessage;

constexpr std::int64_t queries = 3, heads = 4, kv_heads = 2, dimensions = 4, width = 16;

LayerReading some_reading(models::Gate gate) {
  at::manual_seed(11);
  LayerReading reading;
  reading.n_eff = 1 + 4 * at::rand({queries, heads}, at::kDouble);
  reading.residual = at::rand({queries, heads, dimensions}, at::kDouble);
  reading.value_variance = at::rand({kv_heads, dimensions}, at::kDouble);
  reading.estimate = at::randn({queries, heads, dimensions}, at::kDouble);
  if (gate == models::Gate::headwise) reading.gate = at::rand({queries, heads}, at::kDouble);
  if (gate == models::Gate::elementwise) reading.gate = at::rand({queries, heads, dimensions}, at::kDouble);
  return reading;
}

double number(const at::Tensor& x) {
  return x.item<double>();
}

class ObservedBy : public ::testing::TestWithParam<std::tuple<models::Gate, bool>> {};
INSTANTIATE_TEST_SUITE_P(Gates, ObservedBy,
                         ::testing::Combine(::testing::Values(models::Gate::none, models::Gate::headwise,
                                                              models::Gate::elementwise),
                                            ::testing::Bool()));

TEST_P(ObservedBy, IsThatOfPlainLoops) {
  const c10::InferenceMode inference;
  const auto [gate, post_norm] = GetParam();
  DecoderConfig config = small_config();
  config.gate = gate;
  config.post_norm = post_norm;
  config.norm_offset = 1;
  config.residual_scale = 0.3;
  const models::LayerWeights weights = RandomWeights(2, at::kDouble).of(config).layers[0];
  const LayerReading reading = some_reading(gate);
  const ObservedVariance found = observed_variance(config, weights, reading);
  for (std::int64_t query = 0; query < queries; ++query) {
    std::vector<double> sums(width), bounds(width), results(width);
    for (std::int64_t out = 0; out < width; ++out) {
      for (std::int64_t head = 0; head < heads; ++head) {
        for (std::int64_t d = 0; d < dimensions; ++d) {
          const double g = gate == models::Gate::none       ? 1
                           : gate == models::Gate::headwise ? number(reading.gate[query][head])
                                                            : number(reading.gate[query][head][d]);
          const double w = number(weights.output[out][head * dimensions + d]);
          const double v =
              bft::reml_conjugate_variance(number(reading.n_eff[query][head]), number(reading.residual[query][head][d]),
                                           1, number(reading.value_variance[head / 2][d]));
          const auto place = static_cast<std::size_t>(out);
          sums[place] += w * w * g * g * v;
          bounds[place] += std::abs(w) * g * std::sqrt(v);
          results[place] += w * g * number(reading.estimate[query][head][d]);
        }
      }
    }
    double square = config.norm_epsilon;
    for (const double result : results) square += result * result / width;
    for (std::int64_t out = 0; out < width; ++out) {
      const auto place = static_cast<std::size_t>(out);
      const double weight = post_norm ? 1 + number(weights.attention_post_norm[out]) : 1;
      const double factor = 0.09 * weight * weight / (post_norm ? square : 1);
      EXPECT_NEAR(number(found.independent[query][out]), factor * sums[place], 1e-12);
      EXPECT_NEAR(number(found.bound[query][out]), factor * bounds[place] * bounds[place], 1e-11);
    }
  }
}

TEST(Updated, JoinsOrAdds) {
  const at::Tensor variance = at::tensor({1.0, 4.0, 0.0}, at::kDouble),
                   observed = at::tensor({3.0, 4.0, 2.0}, at::kDouble);
  const at::Tensor joined = updated(variance, observed, DepthReading::filter);
  EXPECT_DOUBLE_EQ(number(joined[0]), 0.75);  // 1 / (1/1 + 1/3)
  EXPECT_DOUBLE_EQ(number(joined[1]), 2);
  EXPECT_DOUBLE_EQ(number(joined[2]), 0);
  const at::Tensor added = updated(variance, observed, DepthReading::gain_one);
  EXPECT_DOUBLE_EQ(number(added[0]), 4);
  EXPECT_DOUBLE_EQ(number(gain(variance, observed, 0)[0]), 0.25);
  EXPECT_THAT([&] { gain(at::zeros({1}, at::kDouble), at::zeros({1}, at::kDouble), 7); },
              ThrowsMessage<RunFailed>(HasSubstr("layer 7")));
}

TEST(QuantilesOf, InterpolateBetweenNumbers) {
  const runfile::DepthQuantiles found = quantiles_of(at::arange(101, at::kDouble).view({1, 101}));
  EXPECT_EQ(found, (runfile::DepthQuantiles{5, 25, 50, 75, 95}));
}

TEST(CheckCarries, NamesWhatHasNoRule) {
  const auto refused = [](const std::string& words, auto change) {
    DecoderConfig config = small_config();
    change(config);
    EXPECT_THAT([&] { check_carries(config, 2, "here"); }, ThrowsMessage<InvalidArgument>(HasSubstr(words)));
  };
  refused("here: layers 0 have linear attention", [](DecoderConfig& c) { c.delta.layers = {true, false}; });
  refused("the same stream", [](DecoderConfig& c) { c.parallel_residual = true; });
  refused("sink logits", [](DecoderConfig& c) { c.sink_logits = true; });
  refused("clips its gate", [](DecoderConfig& c) { c.clipped_gate.emplace(); });
  refused("has a filter", [](DecoderConfig& c) { c.filter = testing::filter_for_tests(); });
  DecoderConfig later = small_config();
  later.delta.layers = {false, true};
  EXPECT_NO_THROW(check_carries(later, 1, "here"));
}

}  // namespace carried_variance_test
}  // namespace gainlens::depth
