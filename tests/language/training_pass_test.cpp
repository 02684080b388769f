// Rows together and one at a time, layers kept and recomputed, weights in float32 and with a copy in bfloat16: one
// step.
#include "bft/arm.h"
#include "language/answer_task.h"
#include "language/language_testing.h"
#include "models/checkpoint/initial_weights.h"
#include "models/checkpoint/read_config.h"
#include "models/decoder/filter_config.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace gainlens::language {
namespace training_pass_test {

const std::vector<AnswerRow> rows = {
    {{1, 7, 9, 30, 31, 2}, 3, false}, {{1, 8, 34, 2}, 2, false}, {{1, 3, 4, 5, 6, 11, 12, 13, 2}, 6, false}};

models::DecoderConfig config_of(bft::Arm arm, int layers = 3) {
  Json document = testing::small_recipe()["model"];
  document.erase("headwise_attn_output_gate");
  document["num_hidden_layers"] = layers;
  document["vocab_size"] = 40;
  if (arm != bft::Arm::plain) {
    bft::FilterOptions filter = models::default_decoder_filter();
    filter.estimator = bft::Estimator::reml_conjugate;
    filter.warm_up = 0;
    filter.jacobian_rank = 4;
    document[models::filter_key] = Json(knobs_to_json(bft::filter_knobs(), filter));
    if (arm != bft::Arm::bft) document[models::filter_arm_key] = bft::name_of(arm);
  }
  return models::parse_decoder_config(document, "test");
}

struct Step {
  double loss = 0, held_out = 0;
  std::map<std::string, at::Tensor> gradients;
  Json notes;  // with the running means of a filter
};

Step step_of(bft::Arm arm, AnswerTaskOptions options) {
  options.batch = std::ssize(rows);
  const models::DecoderConfig config = config_of(arm);
  models::DecoderWeights weights = models::initial_weights(config, 3);
  {
    const at::NoGradGuard no_gradients;
    at::manual_seed(7);
    for (const models::NamedTensor& weight : models::decoder_parameters(config, weights))
      if (at::Tensor tensor = weight.tensor; tensor.dim() == 2) tensor.normal_(0, 0.2);
  }
  AnswerTask task(config, std::move(weights), rows, {rows[1]}, 5, options, [](const auto&) { return Json(); });
  Step found{.loss = task.accumulate_gradients(0)};
  for (const training::ParameterGroup& group : task.parameters()) {
    for (const models::NamedTensor& parameter : group.parameters) {
      EXPECT_EQ(parameter.tensor.scalar_type(), at::kFloat) << parameter.name;
      found.gradients[parameter.name] = parameter.tensor.grad();
    }
  }
  found.notes = task.notes();
  found.held_out = task.validation_loss();
  return found;
}

/// The largest error of a gradient, of its norm.
double error_of(const Step& found, const Step& expected) {
  EXPECT_EQ(found.gradients.size(), expected.gradients.size());
  double worst = 0;
  for (const auto& [name, gradient] : expected.gradients) {
    const double norm = gradient.norm().item<double>();
    const double error = (found.gradients.at(name) - gradient).norm().item<double>();
    if (norm > 0) worst = std::max(worst, error / norm);
    EXPECT_TRUE(norm > 0 || error == 0) << name;
  }
  return worst;
}

class TrainingPass : public ::testing::TestWithParam<bft::Arm> {};

TEST_P(TrainingPass, RowsTogetherHaveTheGradientsOfSingleOnes) {
  for (const double gamma : {0.0, 2.0}) {
    AnswerTaskOptions together{.focal = FocalLoss{.gamma = gamma}}, single = together, two = together;
    single.tokens_at_once = 1;
    two.tokens_at_once = 8;
    const Step expected = step_of(GetParam(), single);
    for (const AnswerTaskOptions& options : {together, two}) {
      const Step found = step_of(GetParam(), options);
      EXPECT_NEAR(found.loss, expected.loss, 1e-5 * expected.loss);
      EXPECT_LT(error_of(found, expected), 1e-5);
    }
  }
}

TEST_P(TrainingPass, RecomputedLayersChangeNoBit) {
  for (const std::int64_t tokens : {1, 8, 2048}) {
    AnswerTaskOptions kept{.tokens_at_once = tokens}, again = kept;
    again.recompute = true;
    const Step expected = step_of(GetParam(), kept), found = step_of(GetParam(), again);
    EXPECT_EQ(found.loss, expected.loss);
    EXPECT_EQ(error_of(found, expected), 0) << tokens;
    EXPECT_EQ(found.notes, expected.notes);  // the running means too: a layer counts once
  }
}

TEST_P(TrainingPass, ABfloat16CopyGivesItsGradientsToTheMasters) {
  const Step expected = step_of(GetParam(), {}), found = step_of(GetParam(), {.dtype = at::kBFloat16});
  EXPECT_NEAR(found.loss, expected.loss, 0.01 * expected.loss);
  EXPECT_NEAR(found.held_out, expected.held_out, 0.01 * expected.held_out);
  EXPECT_LT(error_of(found, expected), 0.15);
  const Step again = step_of(GetParam(), {.recompute = true, .dtype = at::kBFloat16});
  EXPECT_EQ(error_of(again, found), 0);
}

INSTANTIATE_TEST_SUITE_P(Arms, TrainingPass,
                         ::testing::Values(bft::Arm::plain, bft::Arm::bft, bft::Arm::constant_k, bft::Arm::gate,
                                           bft::Arm::plain_decay),
                         [](const auto& info) {
                           std::string name(bft::name_of(info.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(TrainingPassArms, AFilterOfTheseTestsActs) {
  EXPECT_NE(step_of(bft::Arm::bft, {}).loss, step_of(bft::Arm::plain, {}).loss);
  EXPECT_NE(step_of(bft::Arm::bft, {}).notes.at("batches_seen"), 0);
}

}  // namespace training_pass_test
}  // namespace gainlens::language
