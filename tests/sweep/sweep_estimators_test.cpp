// What a sweep stores with each estimator, against bft::observe on the captured weights and values.
#include "bft/estimators.h"
#include "models/checkpoint/load_decoder.h"
#include "sweep/one_sequence.h"
#include "sweep/sweep_chunk.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

namespace gainlens::sweep {
namespace sweep_estimators_test {

constexpr std::int64_t length = 48;

data::Chunk some_chunk() {
  data::Chunk chunk{length, 0, {}};
  for (std::int64_t i = 0; i < length; ++i) chunk.tokens.push_back(static_cast<tokenizers::TokenId>(2 + i * i % 31));
  return chunk;
}

/// Weights [head, query, key] and values [kv_head, key, dimension] of layer 0, float64.
struct Captured {
  at::Tensor weights, values;
};

Captured captured_from(hooks::HookedModel& model, const data::Chunk& chunk) {
  const c10::InferenceMode inference;
  Captured found;
  hooks::Hooks hooks;
  const auto keep = [&](const char* site, at::Tensor& into) {
    hooks.observe(hooks::Glob(site), [&into](const auto&, const at::Tensor& seen) { into = seen[0].to(at::kDouble); });
  };
  keep("blocks.0.attn.hook_pattern", found.weights);
  keep("blocks.0.attn.hook_v", found.values);
  model.forward(one_sequence(chunk.tokens), {.stop_at_layer = 1}, hooks);
  found.values = found.values.transpose(0, 1).contiguous();
  return found;
}

std::vector<double> numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous().flatten();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

/// lambda_obs of one query that sees the keys from `first` on, mean over dimensions.
double precision_of(const Captured& captured, std::int64_t head, std::int64_t query, std::int64_t first,
                    const ChosenEstimator& estimator) {
  const std::int64_t group = captured.weights.size(0) / captured.values.size(0);
  const std::vector<double> weights = numbers(captured.weights[head][query].slice(0, first, query + 1)),
                            values = numbers(captured.values[head / group].slice(0, first, query + 1));
  bft::EstimatorOptions options;
  if (estimator.name == Estimator::delta_weight_free) options.score_noise = estimator.score_noise;
  const bft::Observation found =
      bft::observe(estimator.name, {weights, values, static_cast<std::size_t>(captured.values.size(2))}, options);
  return std::accumulate(found.precision.begin(), found.precision.end(), 0.0) /
         static_cast<double>(found.precision.size());
}

TEST(SweepEstimators, StoresWhatTheEstimatorSaysOfTheCapturedWeights) {
  for (const char* family : {"llama", "mistral-window", "gpt-oss"}) {
    const auto model = models::load_decoder(std::filesystem::path(GAINLENS_SOURCE_DIR) / "tests/golden/models" / family,
                                            {.dtype = at::kDouble});
    const data::Chunk chunk = some_chunk();
    Captured captured = captured_from(*model, chunk);
    captured.weights = captured.weights / captured.weights.sum(-1, true);  // without the sink's share
    for (const ChosenEstimator& estimator :
         {ChosenEstimator{Estimator::reml}, ChosenEstimator{Estimator::reml_naive},
          ChosenEstimator{Estimator::reml_conjugate}, ChosenEstimator{Estimator::sandwich},
          ChosenEstimator{Estimator::kish}, ChosenEstimator{Estimator::delta_weight_free, 0.3}}) {
      SCOPED_TRACE(std::string(family) + ", " + std::string(name_of(estimator.name)));
      SweepPlan plan{.layers = {0}, .nll = false, .estimator = estimator};
      const ChunkMeasurement measured = sweep_chunk(*model, chunk, plan);
      const auto& stored = measured.shard.summary.at("observation_precision").values;
      const bool windowed = model->layout().window.at(0) > 0;
      for (std::int64_t head = 0; head < captured.weights.size(0); ++head) {
        double mean = 0;
        for (std::int64_t query = 36; query < length; ++query) {
          // Kish must not count the keys that a window hides.
          const std::int64_t first = windowed ? std::max<std::int64_t>(0, query + 1 - model->layout().window.at(0)) : 0;
          mean += precision_of(captured, head, query, first, estimator) / 12;
        }
        EXPECT_NEAR(stored.at(static_cast<std::size_t>(head)), mean, 1e-9 * mean) << "head " << head;
      }
      // Query 0 sees one key: no degree of freedom, or a variance of 0.
      EXPECT_EQ(measured.queries_undefined, has_no_floor(estimator.name) ? captured.weights.size(0) : 0);
    }
  }
}

}  // namespace sweep_estimators_test
}  // namespace gainlens::sweep
