#include "recommend/recommend_task.h"

#include "core/error.h"
#include "recommend/small_data.h"
#include "recommend/small_training.h"
#include "support/shared_data.h"
#include "training/thread_replicas.h"
#include "training/trainer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

namespace gainlens::recommend {
namespace recommend_task_test {

using gainlens::testing::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// The loss of one step, and the gradients of all parameters.
std::pair<double, std::vector<at::Tensor>> step_of(RecommendTask& task, std::int64_t step,
                                                   training::Replicas& replicas) {
  training::AdamW optimizer(task.parameters(), {});
  const at::Tensor loss = at::scalar_tensor(task.accumulate_gradients(step), at::kDouble);
  std::vector<at::Tensor> gradients = optimizer.gradients();
  std::vector<at::Tensor> shares = gradients;
  shares.push_back(loss);
  replicas.sum(shares);
  return {loss.item<double>(), gradients};
}

TEST(RecommendTask, ProcessesTogetherComputeTheStepsOfOne) {
  const data::LeaveOneOut split = timed_ring_of(35, 23);  // batches of 16, 16 and 3 users
  std::vector<std::pair<Settings, Arm>> cases;
  for (const Arm arm : arms_of()) cases.emplace_back(small(), arm);
  cases.emplace_back(small(), Arm::plain);
  cases.back().first.loss = LossKind::sampled;
  for (const Arm arm : {Arm::plain, Arm::bft}) cases.emplace_back(small("bert4rec"), arm);
  for (const Arm arm : {Arm::plain, Arm::ffn, Arm::bft}) cases.emplace_back(small("hstu"), arm);
  for (const auto& [settings, arm] : cases) {
    for (std::int64_t step = 0; step < 3; ++step) {
      training::SingleReplica alone;
      RecommendTask one(
          settings, arm, split, 7, [](const Backbone&) { return Json(); }, alone);
      const auto [loss, gradients] = step_of(one, step, alone);
      const std::vector<float> ranks = one.ranks(data::HeldOut::validation);
      gainlens::testing::with_replicas(
          4, [&, loss = loss, arm = arm, &settings = settings, &gradients = gradients](training::Replicas& replicas) {
            RecommendTask part(
                settings, arm, split, 7, [](const Backbone&) { return Json(); }, replicas);
            const auto [loss_of_four, gradients_of_four] = step_of(part, step, replicas);
            EXPECT_NEAR(loss_of_four, loss, 1e-6 * loss);
            ASSERT_EQ(gradients_of_four.size(), gradients.size());
            for (std::size_t i = 0; i < gradients.size(); ++i) {
              const double scale = gradients[i].abs().max().item<double>();
              EXPECT_LT((gradients_of_four[i] - gradients[i]).abs().max().item<double>(), 1e-6 + 1e-5 * scale)
                  << name_of(arm) << " " << i;
            }
            EXPECT_EQ(part.ranks(data::HeldOut::validation), ranks);
          });
    }
  }
}

/// All weights, also those that are not learned.
std::vector<at::Tensor> copies_of(Backbone& model) {
  std::vector<at::Tensor> copies;
  for (const WeightSlot& slot : model.slots()) copies.push_back(slot.tensor->detach().clone());
  return copies;
}

/// Trains in a folder.
/// @param stop_after  number of evaluations after which it is killed; 0: never
/// @returns  the weights, with the validation metrics and what is known of the filter
auto train_in(const std::filesystem::path& folder, const Settings& settings, Arm arm, const data::LeaveOneOut& split,
              std::int64_t stop_after) {
  training::SingleReplica alone;
  RecommendTask task(
      settings, arm, split, 7, [](const Backbone&) { return Json(); }, alone);
  training::TrainerOptions options;
  options.steps = settings.epochs * task.steps_per_epoch();
  options.evaluate_every = options.save_every = task.steps_per_epoch();
  options.optimizer.learning_rate = settings.learning_rate;
  options.quiet = true;
  std::int64_t evaluated = 0;
  options.evaluated = [&](const training::Evaluation&) {
    if (++evaluated == stop_after) throw std::runtime_error("killed");
  };
  try {
    training::train(task, training::TrainingFolder(folder, {{"seed", 7}}), options);
  } catch (const std::runtime_error&) {
    EXPECT_GT(stop_after, 0);
  }
  return std::tuple(copies_of(task.model()), task.validation(), Json(task.filter()->notes()));
}

TEST(RecommendTask, InterruptedAnywhereEndsWithTheSameBits) {
  const data::LeaveOneOut split = timed_ring_of(60, 23);
  std::vector<std::pair<Settings, Arm>> cases;
  for (const Arm arm : arms_of()) cases.emplace_back(small(), arm);
  cases.emplace_back(small(), Arm::bft);
  cases.back().first.filter.initial_precision = bft::InitialPrecision::em;
  cases.emplace_back(small(), Arm::bft);
  cases.back().first.filter.initial_precision = bft::InitialPrecision::count;
  cases.back().first.filter.warm_up = 14;
  cases.back().first.filter.warm_up_form = bft::WarmUp::blend;
  for (const Arm arm : {Arm::plain, Arm::bft}) cases.emplace_back(small("bert4rec"), arm);
  for (const Arm arm : {Arm::plain, Arm::bft}) cases.emplace_back(small("hstu"), arm);
  cases.emplace_back(small("bert4rec"), Arm::bft);
  cases.back().first.filter.initial_precision = bft::InitialPrecision::em;
  for (const auto& [settings, arm] : cases) {
    const TemporaryFolder folder;
    const auto whole = train_in(folder.path() / "whole", settings, arm, split, 0);
    train_in(folder.path() / "parts", settings, arm, split, 2);
    train_in(folder.path() / "parts", settings, arm, split, 2);
    const auto parts = train_in(folder.path() / "parts", settings, arm, split, 0);
    EXPECT_EQ(std::get<1>(parts), std::get<1>(whole)) << name_of(arm);
    EXPECT_EQ(std::get<1>(parts)[0].size(), 6u);
    EXPECT_EQ(std::get<2>(parts), std::get<2>(whole)) << name_of(arm);
    for (std::size_t i = 0; i < std::get<0>(whole).size(); ++i)
      EXPECT_TRUE(at::equal(std::get<0>(parts)[i], std::get<0>(whole)[i])) << name_of(arm) << " " << i;
  }
}

TEST(RecommendTask, NanInAPrecisionIsNamedByLayerAndStep) {
  const data::LeaveOneOut split = ring_of(60, 23);
  training::SingleReplica alone;
  const Settings settings = small();
  RecommendTask task(
      settings, Arm::bft, split, 7, [](const Backbone&) { return Json(); }, alone);
  task.accumulate_gradients(0);
  task.accumulate_gradients(1);
  {
    const at::NoGradGuard no_gradients;
    for (const WeightSlot& slot : task.model().slots()) {
      if (slot.name == "layers.0.filter.process_noise") slot.tensor->fill_(NAN);
    }
  }
  EXPECT_THAT([&] { task.accumulate_gradients(2); },
              ThrowsMessage<RunFailed>(HasSubstr("a precision is NaN, first in layer 1")));
}

TEST(RecommendTask, WarnsWhereAllPrecisionsAreAtTheirBound) {
  const data::LeaveOneOut split = ring_of(60, 23);
  training::SingleReplica alone;
  Settings settings = small();
  settings.filter.most_precision = 2;
  settings.filter.warm_up = 0;
  RecommendTask task(
      settings, Arm::bft, split, 7, [](const Backbone&) { return Json(); }, alone);
  task.accumulate_gradients(0);
  task.validation_loss();
  EXPECT_THAT(task.filter()->warning(), HasSubstr("100.0% of the observation precisions of layer 0 are at the bound"));
}

}  // namespace recommend_task_test
}  // namespace gainlens::recommend
