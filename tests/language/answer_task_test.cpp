#include "language/answer_task.h"

#include "models/checkpoint/initial_weights.h"
#include "models/decoder/filter_config.h"
#include "models/random_decoder.h"
#include "training/thread_replicas.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace gainlens::language {
namespace answer_task_test {

const std::vector<AnswerRow> rows = {
    {{1, 7, 9, 30, 31, 2}, 3, false}, {{1, 8, 40, 2}, 2, false}, {{1, 3, 4, 5, 6, 41, 42, 43, 2}, 5, false}};

/// A small decoder of a family that can be named.
models::DecoderConfig llama() {
  models::DecoderConfig config = testing::small_config();
  config.family = "llama";
  return config;
}

models::DecoderWeights random_weights(const models::DecoderConfig& config) {
  static std::mutex one_at_a_time;  // the generator is that of all threads
  const std::lock_guard lock(one_at_a_time);
  models::DecoderWeights weights = models::initial_weights(config, 3);
  const at::NoGradGuard no_gradients;
  at::manual_seed(7);
  for (const models::NamedTensor& weight : models::decoder_parameters(config, weights)) {
    at::Tensor tensor = weight.tensor;
    if (tensor.dim() == 2) tensor.normal_(0, 0.2);
  }
  return weights;
}

AnswerTask task_of(const models::DecoderConfig& config, const AnswerTaskOptions& options,
                   training::Replicas* replicas = nullptr) {
  return AnswerTask(
      config, random_weights(config), rows, {rows[1]}, 5, options, [](const auto&) { return Json("kept"); }, replicas);
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

/// Small decoders: plain, and with a filter that acts from the first step on.
std::vector<models::DecoderConfig> shared_models() {
  std::vector<models::DecoderConfig> configs(2, llama());
  configs[1].filter = models::default_decoder_filter();
  configs[1].filter->warm_up = 0;
  return configs;
}

TEST(SharedAnswers, SharesOfProcessesAddUpToTheStepOfOne) {
  for (const models::DecoderConfig& config : shared_models()) {
    const AnswerTaskOptions options{.batch = 3, .focal = FocalLoss{.learned = true}};
    AnswerTask one = task_of(config, options);
    const auto [gradients, loss] = step_of(one);
    const double held_out = one.validation_loss();
    for (const std::int64_t size : {2, 4}) {  // 1 row and 2 rows with 3, 2 and 4 answer tokens; a process without rows
      testing::with_replicas(size, [&, &gradients = gradients, loss = loss](training::Replicas& replicas) {
        AnswerTask part = task_of(config, options, &replicas);
        auto [shares, share] = step_of(part);
        const at::Tensor total = at::scalar_tensor(share, at::kDouble);
        replicas.sum({total});
        EXPECT_NEAR(total.item<double>(), loss, 1e-6);
        for (const auto& [name, gradient] : gradients) {
          at::Tensor sum = shares[name].defined() ? shares[name].clone() : at::zeros_like(gradient);
          replicas.sum({sum});
          const double scale = gradient.abs().max().item<double>();
          EXPECT_LT((sum - gradient).abs().max().item<double>(), 1e-6 + 1e-5 * scale) << name << " of " << size;
        }
        EXPECT_NEAR(part.validation_loss(), held_out, 1e-6);
        ASSERT_EQ(part.filter().curves().size(), one.filter().curves().size());
        for (const auto& [name, values] : one.filter().curves()) {
          const std::vector<double>& found = part.filter().curves().at(name);
          ASSERT_EQ(found.size(), values.size());
          for (std::size_t i = 0; i < values.size(); ++i) {
            if (!std::isnan(values[i])) {
              EXPECT_NEAR(found[i], values[i], 1e-5) << name;
            }
          }
        }
      });
    }
  }
}

TEST(StartLoss, IsThatOfThePlainModelAndThatOfTheWholeFilterAndChangesNothing) {
  const models::DecoderConfig acting = shared_models()[1];
  models::DecoderConfig later = acting;
  later.filter->warm_up = 2;
  const AnswerTaskOptions options{.batch = 3};
  AnswerTask plain = task_of(llama(), options), begun = task_of(acting, options), task = task_of(later, options);
  plain.measure_start();
  EXPECT_FALSE(plain.start());
  const Json before = task.notes();
  task.measure_start();
  ASSERT_TRUE(task.start());
  EXPECT_EQ(task.start()->plain, plain.validation_loss());
  begun.accumulate_gradients(0);                                       // the filter acts, and no weight has changed
  EXPECT_NEAR(task.start()->filtered, begun.validation_loss(), 1e-6);  // float32: sums round by the vector width
  EXPECT_GT(std::abs(task.start()->filtered - task.start()->plain), 1e-4);
  Json after = task.notes();
  AnswerTask resumed = task_of(later, options);
  resumed.restore(after);
  ASSERT_TRUE(resumed.start());
  EXPECT_EQ(resumed.start()->filtered, task.start()->filtered);
  after.erase("start");
  EXPECT_EQ(after, before);
  task.accumulate_gradients(0);  // the filter does not act yet
  EXPECT_EQ(task.validation_loss(), task.start()->plain);
  // Two processes measure the same.
  testing::with_replicas(2, [&](training::Replicas& replicas) {
    AnswerTask part = task_of(later, options, &replicas);
    part.measure_start();
    EXPECT_NEAR(part.start()->plain, task.start()->plain, 1e-6);
    EXPECT_NEAR(part.start()->filtered, task.start()->filtered, 1e-5);
  });
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

}  // namespace answer_task_test
}  // namespace gainlens::language
