#include "training/trainer.h"

#include "core/error.h"
#include "support/refusal.h"
#include "support/shared_data.h"
#include "training/schedule.h"
#include "training/training_folder.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace gainlens::training {
namespace trainer_test {

using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Fits a point to targets that come in a random order, with noise of its own for each step. It counts its steps in its
/// notes. All must survive a restart.
class FitPoint : public Task {
 public:
  std::vector<ParameterGroup> parameters() override { return {{"all", {{"point", point}}}}; }

  double accumulate_gradients(std::int64_t step) override {
    if (step == stop_before) throw std::runtime_error("killed");
    if (step == nan_at) return std::numeric_limits<double>::quiet_NaN();
    const at::Tensor target =
        at::full({3}, static_cast<double>(order_.at(step)), at::kDouble) +
        at::randn({3}, at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(step)), at::kDouble);
    ++counted;
    const at::Tensor loss = (point - target).pow(2).mean();
    loss.backward();
    return loss.item<double>();
  }

  double amount(std::int64_t) const override { return 1; }
  double validation_loss() override {
    return validation ? validation() : (point.detach() - 4.5).pow(2).mean().item<double>();
  }
  Json notes() const override { return {{"counted", counted}}; }
  void restore(const Json& notes) override { counted = notes.at("counted").get<std::int64_t>(); }
  void keep_best() override { kept.push_back(point.detach().clone()); }

  at::Tensor point = at::zeros({3}, at::kDouble).set_requires_grad(true);
  std::int64_t counted = 0;
  std::int64_t stop_before = -1;
  std::int64_t nan_at = -1;
  std::function<double()> validation;
  std::vector<at::Tensor> kept;

 private:
  DataOrder order_{3, 10};
};

TrainerOptions options() {
  TrainerOptions options;
  options.steps = 30;
  options.schedule = {Decay::cosine, 3, 30, 0.1};
  options.optimizer.learning_rate = 0.3;
  options.evaluate_every = 7;
  options.save_every = 4;
  options.quiet = true;
  return options;
}

TEST(Trainer, InterruptedAnywhereEndsWithTheSameBits) {
  const TemporaryFolder folder;
  const Json request = {{"seed", 1}};
  FitPoint whole;
  const TrainingOutcome expected = train(whole, TrainingFolder(folder.path() / "whole", request), options());
  EXPECT_EQ(expected.history.size(), 5u);  // after steps 7, 14, 21, 28 and the last
  EXPECT_EQ(expected.steps, 30);
  EXPECT_LT(expected.best_loss, 10);

  for (const std::int64_t stop : {3, 9, 22, -1}) {
    FitPoint part;
    part.stop_before = stop;
    const TrainingFolder part_folder(folder.path() / "parts", request);
    if (stop >= 0) {
      EXPECT_THROW(train(part, part_folder, options()), std::runtime_error);
      continue;
    }
    const TrainingOutcome found = train(part, part_folder, options());
    EXPECT_EQ(found.resumed_at, 20);
    EXPECT_EQ(part.counted, 30);
    EXPECT_TRUE(at::equal(part.point, whole.point));
    EXPECT_EQ(runfile::history_csv(found.history), runfile::history_csv(expected.history));
    EXPECT_EQ(found.best_step, expected.best_step);
  }

  FitPoint again;
  const TrainingOutcome finished = train(again, TrainingFolder(folder.path() / "parts", request), options());
  EXPECT_EQ(finished.resumed_at, 30);
  EXPECT_TRUE(at::equal(again.point, whole.point));
  EXPECT_TRUE(again.kept.empty());
}

TEST(Trainer, KeepsTheBestAndStopsEarly) {
  const TemporaryFolder folder;
  FitPoint task;
  int evaluations = 0;
  task.validation = [&] { return ++evaluations == 2 ? 1.0 : 2.0 + evaluations; };
  TrainerOptions chosen = options();
  chosen.evaluate_every = 2;
  chosen.patience = 3;
  const TrainingOutcome outcome = train(task, TrainingFolder(folder.path(), Json{{"kind", "test"}}), chosen);
  EXPECT_TRUE(outcome.stopped_early);
  EXPECT_EQ(outcome.steps, 10);
  EXPECT_EQ(outcome.best_step, 4);
  EXPECT_EQ(outcome.best_loss, 1);
  EXPECT_EQ(task.kept.size(), 2u);

  FitPoint again;  // a training that stopped early is finished
  EXPECT_EQ(train(again, TrainingFolder(folder.path(), Json{{"kind", "test"}}), chosen).resumed_at, 10);
}

TEST(Trainer, StopsAtNanAndSaysWhatIsKept) {
  const TemporaryFolder folder;
  FitPoint task;
  task.nan_at = 9;
  const TrainingFolder training(folder.path(), Json{{"kind", "test"}});
  EXPECT_THAT([&] { train(task, training, options()); },
              ThrowsMessage<RunFailed>(
                  AllOf(HasSubstr("loss is nan at step 10"), HasSubstr("best model, of step 7, is kept"))));
  EXPECT_EQ(task.kept.size(), 1u);

  const TemporaryFolder other;
  FitPoint unjudged;
  unjudged.validation = [] { return std::numeric_limits<double>::infinity(); };
  EXPECT_THAT(
      [&] {
        train(unjudged, TrainingFolder(other.path(), Json{{"kind", "test"}}), options());
      },
      ThrowsMessage<RunFailed>(
          AllOf(HasSubstr("held-out loss is inf after step 7"), HasSubstr("no model has been kept yet"))));
}

TEST(Trainer, RefusesAFolderOfAnotherRequestOrInUse) {
  const TemporaryFolder folder;
  {
    const TrainingFolder first(folder.path() / "a", {{"recipe", {{"steps", 9}}}});
    EXPECT_THROW(TrainingFolder(folder.path() / "a", {{"recipe", {{"steps", 9}}}}), InvalidArgument);
  }
  {
    FitPoint task;  // the first request has no saved state, so another may replace it
    train(task, TrainingFolder(folder.path() / "a", {{"recipe", {{"steps", 3}}}, {"texts", {1}}}), options());
  }
  EXPECT_THAT(
      [&] {
        TrainingFolder(folder.path() / "a", {{"recipe", {{"steps", 3}}}, {"texts", {1, 2}}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("/texts has more entries in this request")));
  EXPECT_THAT(
      [&] {
        TrainingFolder(folder.path() / "a", {{"recipe", {{"steps", 4}}}, {"texts", {1}}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("/recipe/steps is 3 in the stored request and 4 in this one")));
  EXPECT_NO_THROW(TrainingFolder(folder.path() / "a", {{"recipe", {{"steps", 3}}}, {"texts", {1}}}));
  FitPoint again;
  TrainerOptions fewer = options();
  fewer.steps = 20;
  EXPECT_THAT(
      [&] {
        train(again, TrainingFolder(folder.path() / "a", {{"recipe", {{"steps", 3}}}, {"texts", {1}}}), fewer);
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("is at step 30, but the training has only 20 steps")));
}

TEST(StoredRequest, AnAbsentKeyMeansWhatHeldBeforeTheOption) {
  const RequestRules rules = {.may_grow = {"/a/epochs"}, .absent = {{"/a", {{"option", 0.5}}}}, .complete = {"", "/a"}};
  RequestRules with_hint = rules;
  with_hint.hints["/a/option"] = "--preset x has it";
  const Json earlier = {{"version", 1}, {"a", {{"epochs", 3}}}};
  const Json same = {{"version", 1}, {"a", {{"epochs", 4}, {"option", 0.5}}}};
  const Json other = {{"version", 1}, {"a", {{"epochs", 3}, {"option", 0.7}}}};
  const Json grown = {{"version", 1}, {"a", {{"epochs", 4}}}};
  EXPECT_NO_THROW(check_same_request(earlier, same, "folder", rules));
  EXPECT_EQ(in_form_of(earlier, same, rules), grown);
  EXPECT_EQ(request_identity(in_form_of(earlier, same, rules), rules), request_identity(earlier, rules));
  EXPECT_EQ(in_form_of(earlier, other, rules), other) << "another value would be lost";
  EXPECT_EQ(in_form_of(same, grown, rules), same);
  const auto refusal = [&](const Json& stored, const Json& asked) {
    return gainlens::testing::refusal_of([&] { check_same_request(stored, asked, "folder", rules); });
  };
  EXPECT_THAT(refusal(earlier, other), HasSubstr("/a/option is 0.5 in the stored request (which does not name it) and "
                                                 "0.7 in this one"));
  EXPECT_THAT(refusal(other, earlier), HasSubstr("/a/option is 0.7 in the stored request and 0.5 in this one; choose"));
  EXPECT_THAT(gainlens::testing::refusal_of([&] { check_same_request(other, earlier, "folder", with_hint); }),
              HasSubstr("and 0.5 in this one (--preset x has it); choose"));
  EXPECT_THAT(refusal({{"version", 1}, {"a", Json::object()}}, same),
              HasSubstr("lacks /a/epochs, which every version"));
  EXPECT_THAT(refusal({{"version", 1}, {"b", 1}, {"a", {{"epochs", 3}, {"c", 1}}}}, same),
              ::testing::Eq("folder/request.json: made by a newer version of gainlens; unknown keys: /b, /a/c"));
  EXPECT_THAT(refusal({{"version", 2}, {"a", 1}}, same),
              HasSubstr("made by a newer version of gainlens; /version is 2, and this one knows up to 1"));
  EXPECT_THAT(refusal({{"version", 2}, {"b", 1}, {"a", 1}}, same),
              HasSubstr("newer version of gainlens; unknown keys: /b"));
}

TEST(StoredRequest, NamesStayAndWhatAnExperimentGainsIsAdded) {
  const RequestRules rules = {
      .may_gain = {"/sets"}, .names = {"/name"}, .absent = {{"", {{"sets", Json::object()}}}}, .complete = {""}};
  const Json stored = {{"name", "a"}, {"sets", {{"x", 1}}}}, asked = {{"name", "b"}, {"sets", {{"y", 2}}}};
  const Json both = {{"name", "a"}, {"sets", {{"x", 1}, {"y", 2}}}};
  EXPECT_EQ(in_form_of(stored, asked, rules), both);
  EXPECT_NO_THROW(check_same_request(stored, asked, "folder", rules));
  EXPECT_NO_THROW(check_same_request(stored, both, "folder", rules));
  EXPECT_NO_THROW(check_same_request({{"name", "c"}}, asked, "folder", rules));
  EXPECT_EQ(in_form_of(stored, {{"name", "b"}}, rules), stored);
  const Json other = {{"name", "a"}, {"sets", {{"x", 3}}}};
  EXPECT_THAT(gainlens::testing::refusal_of([&] { check_same_request(stored, other, "folder", rules); }),
              HasSubstr("/sets/x is 1 in the stored request and 3 in this one"));
}

TEST(Trainer, RefusesOptionsOutOfRange) {
  const TemporaryFolder folder;
  const TrainingFolder training(folder.path(), Json{{"kind", "test"}});
  FitPoint task;
  for (const auto change : std::vector<void (*)(TrainerOptions&)>{
           [](TrainerOptions& o) { o.steps = 0; }, [](TrainerOptions& o) { o.evaluate_every = 0; },
           [](TrainerOptions& o) { o.save_every = 0; }, [](TrainerOptions& o) { o.max_gradient_norm = -1; },
           [](TrainerOptions& o) { o.schedule.warmup_steps = -1; }, [](TrainerOptions& o) { o.patience = -1; }}) {
    TrainerOptions wrong = options();
    change(wrong);
    EXPECT_THROW(train(task, training, wrong), InvalidArgument);
  }
}

}  // namespace trainer_test
}  // namespace gainlens::training
