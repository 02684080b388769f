// lambda_obs of kernels::attention_statistics_reference, for each estimator, against tests/golden/estimators.json.
#include "core/estimator.h"
#include "core/json.h"
#include "kernels/attention_statistics.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

namespace gainlens {
namespace attention_estimators_test {

at::Tensor tensor(const Json& json, at::IntArrayRef shape) {
  std::vector<double> numbers;
  for (const Json& number : json)
    numbers.push_back(number.is_null() ? std::numeric_limits<double>::quiet_NaN() : number.get<double>());
  return at::tensor(numbers, at::kDouble).reshape(shape);
}

/// lambda_obs [dimension] of one query whose keys have these weights: the scores are their logarithms.
at::Tensor precision_of(const at::Tensor& weights, const at::Tensor& values, const kernels::AttentionOptions& options) {
  const std::int64_t keys = weights.size(0), dimensions = values.size(1);
  kernels::AttentionOptions own = options;
  own.causal = false;
  own.key_bias = weights.log();
  own.returned.per_dimension = true;
  const at::Tensor none = at::zeros({1, keys, dimensions}, weights.options());
  return kernels::attention_statistics_reference(own, none, none, values.unsqueeze(0))
      .observation_precision_by_dimension[0][0];
}

TEST(AttentionEstimatorsGolden, PrecisionsOfTheOracle) {
  const Json file = read_json_file(std::filesystem::path(GAINLENS_SOURCE_DIR) / "tests/golden/estimators.json");
  const std::int64_t batch = file.at("shape").at("batch"), heads = file.at("shape").at("heads"),
                     keys = file.at("shape").at("keys"), dimensions = file.at("shape").at("dimensions");
  std::int64_t compared = 0;
  for (const Json& entry : file.at("cases")) {
    const at::Tensor weights = tensor(entry.at("weights"), {batch * heads, keys, keys}),
                     values = tensor(entry.at("values"), {batch * heads, keys, dimensions}),
                     visible = tensor(entry.at("visible"), {batch * heads, keys, keys}).to(at::kBool);
    for (const auto& [name, expected] : entry.at("estimators").items()) {
      kernels::AttentionOptions options;
      options.estimator.name = parse_estimator(name, "golden");
      if (options.estimator.name == Estimator::delta) continue;
      if (options.estimator.name == Estimator::delta_weight_free) options.estimator.score_noise = entry.at("omega");
      options.prior_strength = entry.at("nu");
      options.prior_variance = entry.at("prior").get<double>();
      const at::Tensor variance = tensor(expected.at("variance"), {batch * heads, keys, dimensions});
      for (std::int64_t head = 0; head < batch * heads; ++head) {
        for (std::int64_t query = 0; query < keys; ++query) {
          const at::Tensor seen = visible[head][query].nonzero().flatten(),
                           own = weights[head][query].index_select(0, seen);
          // A visible key without weight has no score; weights of both signs are not those of a softmax.
          if (seen.numel() == 0 || !own.gt(0).all().item<bool>()) continue;
          const at::Tensor found = precision_of(own, values[head].index_select(0, seen), options);
          // Of one key the golden has 0 or the square of a rounding error: a sweep gives no precision then.
          at::Tensor given = variance[head][query];
          if (has_no_floor(options.estimator.name))
            given = at::where(given < min_variance, std::numeric_limits<double>::quiet_NaN(), given);
          EXPECT_TRUE(at::allclose(found.reciprocal(), given, 1e-9, 1e-30, /*equal_nan=*/true))
              << entry.at("name") << ", " << name << ", head " << head << ", query " << query;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 300);
}

}  // namespace attention_estimators_test
}  // namespace gainlens
