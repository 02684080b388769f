#include "language/answer_task.h"

#include "models/checkpoint/initial_weights.h"
#include "models/random_decoder.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace gainlens::language {
namespace {

const std::vector<AnswerRow> rows = {
    {{1, 7, 9, 30, 31, 2}, 3, false}, {{1, 8, 40, 2}, 2, false}, {{1, 3, 4, 5, 6, 41, 42, 43, 2}, 5, false}};

/// A small decoder of a family that can be named.
models::DecoderConfig llama() {
  models::DecoderConfig config = testing::small_config();
  config.family = "llama";
  return config;
}

models::DecoderWeights random_weights(const models::DecoderConfig& config) {
  models::DecoderWeights weights = models::initial_weights(config, 3);
  const at::NoGradGuard no_gradients;
  at::manual_seed(7);
  for (const models::NamedTensor& weight : models::decoder_parameters(config, weights)) {
    at::Tensor tensor = weight.tensor;
    if (tensor.dim() == 2) tensor.normal_(0, 0.2);
  }
  return weights;
}

AnswerTask task_of(const models::DecoderConfig& config, const AnswerTaskOptions& options) {
  return AnswerTask(config, random_weights(config), rows, {rows[1]}, 5, options,
                    [](const auto&) { return Json("kept"); });
}

/// The loss over all rows, in the textbook form: logits of every position, and a mask.
at::Tensor textbook(const models::DecoderConfig& config, models::DecoderWeights weights, double gamma) {
  models::Decoder decoder(config, std::move(weights), models::WeightUse::trained);
  at::Tensor sum = at::zeros({}, at::kDouble);
  std::int64_t tokens = 0;
  for (const AnswerRow& row : rows) {
    const at::Tensor ids = at::tensor(row.ids, at::kLong);
    const at::Tensor logits = decoder.unembed(decoder.forward({ids.unsqueeze(0)}, {}, {}).hidden)[0].to(at::kDouble);
    const at::Tensor p = at::softmax(logits, -1);
    for (std::int64_t place = row.first_answer; place < ids.size(0); ++place, ++tokens) {
      const at::Tensor right = p[place - 1][row.ids[static_cast<std::size_t>(place)]];
      sum = sum - at::pow(1 - right, gamma) * at::log(right);
    }
  }
  return sum / static_cast<double>(tokens);
}

/// Gradients of a step with every row, by name, and its loss.
std::pair<std::map<std::string, at::Tensor>, double> step_of(AnswerTask& task) {
  const double loss = task.accumulate_gradients(0);
  std::map<std::string, at::Tensor> gradients;
  for (const training::ParameterGroup& group : task.parameters())
    for (const models::NamedTensor& parameter : group.parameters) gradients[parameter.name] = parameter.tensor.grad();
  return {gradients, loss};
}

class AnswerLoss : public ::testing::TestWithParam<double> {};

TEST_P(AnswerLoss, AndItsGradientsAreThoseOfTheTextbook) {
  models::DecoderConfig config = llama();
  config.tied_head = GetParam() == 1;
  AnswerTaskOptions options{.batch = 3};
  if (GetParam() > 0) options.focal = FocalLoss{.gamma = GetParam()};
  AnswerTask task = task_of(config, options);
  const auto [gradients, loss] = step_of(task);
  models::DecoderWeights own = random_weights(config);
  const at::Tensor expected = textbook(config, own, GetParam());
  expected.backward();
  EXPECT_NEAR(loss, expected.item<double>(), 1e-5);
  std::size_t compared = 0;
  for (const models::NamedTensor& weight : models::decoder_parameters(config, own)) {
    const at::Tensor& found = gradients.at(weight.name);
    const double scale = std::max(1e-3, weight.tensor.grad().abs().max().item<double>());
    EXPECT_LT((found - weight.tensor.grad()).abs().max().item<double>() / scale, 1e-4) << weight.name;
    ++compared;
  }
  EXPECT_EQ(compared, gradients.size());
}

INSTANTIATE_TEST_SUITE_P(Gammas, AnswerLoss, ::testing::Values(0.0, 0.5, 1.0, 2.0));

TEST(LearnedGamma, StartsAtLn2AndItsGradientRaisesIt) {
  const models::DecoderConfig config = llama();
  AnswerTask task = task_of(config, {.batch = 3, .focal = FocalLoss{.learned = true}});
  const auto [gradients, loss] = step_of(task);
  EXPECT_NEAR(loss, textbook(config, random_weights(config), std::log(2.0)).item<double>(), 1e-5);
  // d loss / d alpha, by central differences of the textbook: softplus' is 1/2 at 0.
  const double step = 1e-4;
  const auto at_alpha = [&](double alpha) {
    return textbook(config, random_weights(config), std::log1p(std::exp(alpha))).item<double>();
  };
  const double slope = (at_alpha(step) - at_alpha(-step)) / (2 * step);
  EXPECT_LT(slope, 0);
  EXPECT_NEAR(gradients.at("focal.alpha").item<double>(), slope, 1e-5);
  task.validation_loss();
  ASSERT_EQ(task.gammas().size(), 1u);
  EXPECT_NEAR(task.gammas()[0], std::log(2.0), 1e-6);
}

TEST(AnswerTaskData, PromptsHaveNoLossAndRowsDoNotSeeEachOther) {
  const models::DecoderConfig config = llama();
  // Rows with as many answer tokens: the loss of all of them in one step is the mean of those of three steps.
  const std::vector<AnswerRow> even = {{{1, 7, 9, 30, 2}, 3, false}, {{1, 8, 40, 2}, 2, false}, {{4, 5, 2}, 1, false}};
  const auto of_batch = [&](std::int64_t batch) {
    return AnswerTask(config, random_weights(config), even, {rows[1]}, 5, {.batch = batch},
                      [](const auto&) { return Json(); });
  };
  AnswerTask task = of_batch(1), together = of_batch(3);
  double sum = 0;
  for (std::int64_t step = 0; step < 3; ++step) sum += task.accumulate_gradients(step) / 3;
  EXPECT_NEAR(together.accumulate_gradients(0), sum, 1e-6);
  EXPECT_EQ(task.steps_of(2), 6);
  EXPECT_EQ(task_of(config, {.batch = 2}).steps_of(1), 2);
  EXPECT_EQ(task_of(config, {.batch = 2}).steps_of(2), 3);
  // The held-out loss is the plain one, also with focal loss.
  AnswerTask focal = task_of(config, {.batch = 1, .focal = FocalLoss{.gamma = 2}});
  AnswerTask plain = task_of(config, {.batch = 1});
  EXPECT_EQ(focal.validation_loss(), plain.validation_loss());
}

TEST(AnswerTaskNotes, SurviveAKill) {
  const models::DecoderConfig config = llama();
  AnswerTask task = task_of(config, {.batch = 1, .focal = FocalLoss{.learned = true}});
  task.validation_loss();
  task.keep_best();
  AnswerTask other = task_of(config, {.batch = 1, .focal = FocalLoss{.learned = true}});
  other.restore(task.notes());
  EXPECT_EQ(other.kept(), Json("kept"));
  EXPECT_EQ(other.gammas(), task.gammas());
}

}  // namespace
}  // namespace gainlens::language
