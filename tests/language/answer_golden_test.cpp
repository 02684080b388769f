// Against tests/golden/finetune.json: one step of the field's Python reference with its autograd, in float64.
#include "core/json.h"
#include "language/answer_task.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/initial_weights.h"
#include "models/decoder/filter_config.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

namespace gainlens::language {
namespace answer_golden_test {

/// Adds the filter of an arm of decoder_filter_reference.py. Its weights follow from their names.
void add_filter(models::Checkpoint& checkpoint, const std::string& arm) {
  models::DecoderConfig& config = checkpoint.config;
  config.filter = models::default_decoder_filter();
  config.filter_arm = models::decoder_arm(arm, "golden");
  config.filter->estimator = bft::Estimator::reml_conjugate;
  config.filter->most_precision = 3;
  config.filter->most_process_noise = 10;
  config.filter->process_noise_start = -2;
  config.filter->initial_range = 0.5;
  config.filter->warm_up = 0;
  if (config.post_norm) config.filter->gain_place = bft::GainPlace::after;
  models::DecoderWeights fresh = models::initial_weights(config, 1);
  checkpoint.weights.precision = fresh.precision;
  for (std::size_t layer = 0; layer < fresh.layers.size(); ++layer)
    checkpoint.weights.layers[layer].filter = fresh.layers[layer].filter;
  for (const models::WeightRole role : {models::WeightRole::weight, models::WeightRole::precision}) {
    for (const models::NamedTensor& parameter : models::decoder_parameters(config, checkpoint.weights, role)) {
      const std::string& name = parameter.name;
      if (name.find("filter.") == std::string::npos && !name.starts_with("model.precision.")) continue;
      if (name == "model.precision.range") continue;
      const auto ends = [&name](const char* end) { return name.ends_with(end); };
      const double start = ends("process_noise")                 ? -2
                           : ends("recency")                     ? std::log(0.99 / 0.01)
                           : ends("gate.bias") || ends("r.gain") ? std::log(9.0)
                                                                 : 0;
      const double shift = std::accumulate(name.begin(), name.end(), 0) % 97;
      const at::NoGradGuard no_gradients;
      at::Tensor tensor = parameter.tensor;
      const at::Tensor places = at::arange(tensor.numel(), at::kDouble);
      tensor.copy_((start + 0.3 * (0.7 * places + shift).cos()).view(tensor.sizes()));
    }
  }
}

TEST(FinetuneGolden, LossAndGradientsOfAStepAreTheReferences) {
  const std::string folder = GAINLENS_SOURCE_DIR "/tests/golden/";
  const Json golden = read_json_file(folder + "finetune.json");
  std::vector<AnswerRow> rows;
  for (const Json& row : golden.at("rows"))
    rows.push_back({row.at("ids").get<std::vector<std::int64_t>>(), row.at("first_answer").get<std::int64_t>(), false});
  double worst = 0;
  std::size_t compared = 0;
  const AnswerTaskOptions together, single{.tokens_at_once = 1}, recomputed{.recompute = true};
  for (const AnswerTaskOptions& way : {together, single, recomputed}) {
    for (const auto& [name, steps] : golden.items()) {
      if (name == "versions" || name == "rows") continue;
      for (const Json& expected : steps) {
        const double gamma = expected.at("gamma");
        const std::string arm = expected.value("arm", "plain");
        SCOPED_TRACE(name + ", gamma " + std::to_string(gamma) + ", arm " + arm);
        models::Checkpoint checkpoint = models::load_checkpoint(folder + "models/" + name);
        if (arm != "plain") add_filter(checkpoint, arm);
        AnswerTaskOptions options = way;
        options.batch = std::ssize(rows);
        if (gamma > 0) options.focal = FocalLoss{.gamma = gamma};
        AnswerTask task(checkpoint.config, std::move(checkpoint.weights), rows, {rows[0]}, 1, options,
                        [](const auto&) { return Json(); });
        EXPECT_NEAR(task.accumulate_gradients(0), expected.at("loss").get<double>(), 1e-5);
        std::size_t own = 0;
        for (const training::ParameterGroup& group : task.parameters()) {
          for (const models::NamedTensor& parameter : group.parameters) {
            ASSERT_TRUE(expected.at("gradients").contains(parameter.name)) << parameter.name;
            const Json& numbers = expected.at("gradients").at(parameter.name);
            ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
            const at::Tensor gradient = parameter.tensor.grad().flatten().to(at::kDouble);
            const double norm = numbers.at(0);
            const double product = at::dot(gradient, at::arange(gradient.size(0), at::kDouble).cos()).item<double>();
            const double error = std::max(std::abs(gradient.norm().item<double>() - norm),
                                          std::abs(product - numbers.at(1).get<double>())) /
                                 norm;
            // The gradient of a single number is one sum over all scores, whose terms cancel.
            EXPECT_LT(error, gradient.numel() == 1 ? 1e-4 : 1e-5) << parameter.name;
            worst = std::max(worst, error);
            ++own;
          }
        }
        EXPECT_EQ(own, expected.at("gradients").size());
        compared += own;
      }
    }
  }
  EXPECT_GE(compared, 3u * 3u * 7u * 20u);
  std::printf("largest error of %zu gradients, of their norm: %.3g\n", compared, worst);
}

}  // namespace answer_golden_test
}  // namespace gainlens::language
