#include "training/replicas.h"

#include "core/error.h"
#include "support/free_port.h"
#include "support/recording_listener.h"
#include "support/refusal.h"
#include "support/shared_data.h"
#include "training/thread_replicas.h"
#include "training/trainer.h"
#include "training/training_folder.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <thread>

namespace gainlens::training {
namespace replicas_test {

using gainlens::testing::free_port;
using gainlens::testing::refusal_of;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::with_replicas;
using ::testing::HasSubstr;

/// Fits a line to 10 points. The points of a step are divided among the processes.
class FitLine : public Task {
 public:
  explicit FitLine(const Replicas& replicas) : replicas_(replicas) {}

  std::vector<ParameterGroup> parameters() override { return {{"all", {{"line", line}, {"unused", unused}}}}; }
  double accumulate_gradients(std::int64_t step) override {
    constexpr std::int64_t points = 10;
    const Range own = replicas_.part_of(step % 2 == 0 ? points : 2);  // fewer than processes in odd steps
    if (own.first == own.last) return 0;
    const at::Tensor x = at::arange(own.first, own.last, at::kDouble) + static_cast<double>(step % 3);
    const double share = 1 / static_cast<double>(step % 2 == 0 ? points : 2);
    const at::Tensor loss = (line[0] + line[1] * x - (3 - 0.5 * x)).pow(2).sum() * share + unused.sum() * 0 * share;
    loss.backward();
    return loss.item<double>();
  }
  double amount(std::int64_t) const override { return 1; }
  double validation_loss() override {
    return (line.detach() - at::tensor({3.0, -0.5}, at::kDouble)).norm().item<double>();
  }
  void keep_best() override { ++kept; }

  at::Tensor line = at::zeros({2}, at::kDouble).set_requires_grad(true);
  at::Tensor unused = at::ones({3}, at::kFloat).set_requires_grad(true);
  int kept = 0;

 private:
  const Replicas& replicas_;
};

TrainerOptions options(std::int64_t steps) {
  TrainerOptions options;
  options.steps = steps;
  options.optimizer.learning_rate = 0.1;
  options.schedule.decay = Decay::constant;
  options.evaluate_every = options.save_every = 5;
  options.quiet = true;
  return options;
}

TEST(Replicas, PartsCoverEverythingOnce) {
  for (const std::int64_t count : {0, 1, 5, 16, 17}) {
    std::array<Range, 4> parts;
    with_replicas(
        4, [&](Replicas& replicas) { parts[static_cast<std::size_t>(replicas.rank())] = replicas.part_of(count); });
    EXPECT_EQ(parts.front().first, 0);
    EXPECT_EQ(parts.back().last, count);
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) EXPECT_EQ(parts[i].last, parts[i + 1].first);
    for (const Range& part : parts) EXPECT_LE(part.last - part.first, (count + 3) / 4);
  }
}

class SeveralReplicas : public ::testing::TestWithParam<bool> {};  // whether moments are spread

TEST_P(SeveralReplicas, TrainAsOneAndRankZeroResumesAll) {
  const TemporaryFolder folder;
  SingleReplica alone;
  FitLine one(alone);
  const TrainingFolder whole(folder.path() / "one", Json{{"kind", "test"}});
  const TrainingOutcome expected = train(one, &whole, options(40), alone);
  ASSERT_EQ(expected.history.size(), 8u);
  EXPECT_LT(expected.history.back().training_loss, 0.9 * expected.history.front().training_loss);

  for (const std::int64_t steps : {15, 40}) {  // the second call continues the first
    with_replicas(3, [&](Replicas& replicas) {
      FitLine task(replicas);
      std::optional<TrainingFolder> three;
      if (replicas.leads()) three.emplace(folder.path() / "three", Json{{"kind", "test"}});
      TrainerOptions spread = options(steps);
      spread.spread_moments = GetParam();
      const TrainingOutcome found = train(task, three ? &*three : nullptr, spread, replicas);
      EXPECT_EQ(found.steps, steps);
      EXPECT_EQ(found.resumed_at, steps == 40 ? 15 : 0);
      if (steps < 40) return;
      ASSERT_EQ(found.history.size(), expected.history.size());
      for (std::size_t i = 0; i < found.history.size(); ++i) {
        EXPECT_NEAR(found.history[i].training_loss, expected.history[i].training_loss, 1e-12);
        EXPECT_NEAR(found.history[i].gradient_norm, expected.history[i].gradient_norm, 1e-12);
      }
      EXPECT_LT((task.line - one.line).abs().max().item<double>(), 1e-12);
      EXPECT_EQ(task.kept > 0, replicas.leads());
    });
  }
  // The state is that of one process, with every moment.
  const TrainingState stored = load_training_state(folder.path() / "three" / "state.safetensors");
  const TrainingState of_one = load_training_state(whole.state_file());
  ASSERT_EQ(stored.tensors.size(), of_one.tensors.size());
  for (const auto& [name, tensor] : of_one.tensors)
    EXPECT_LT((stored.tensors.at(name) - tensor).abs().max().item<double>(), 1e-12) << name;
}

INSTANTIATE_TEST_SUITE_P(Moments, SeveralReplicas, ::testing::Bool());

Environment environment_of(const std::map<std::string, std::string>& variables) {
  return [variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(ProcessReplicas, SumAndCopy) {
  if (!can_connect_replicas()) GTEST_SKIP() << "built without gloo";
  const Environment environment = environment_of({{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", free_port()}});
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const auto replicas = connect_replicas({rank, 3, rank}, environment);
      EXPECT_EQ(replicas->rank(), rank);
      EXPECT_EQ(replicas->size(), 3);
      const at::Tensor small = at::full({2, 3}, static_cast<double>(rank), at::kDouble);
      const at::Tensor large = at::arange(100'000, at::kFloat) * (rank + 1);
      const at::Tensor leaf = at::full({5}, 0.5, at::kFloat).set_requires_grad(true);
      replicas->sum({small, large, leaf});
      EXPECT_TRUE(at::equal(small, at::full({2, 3}, 3.0, at::kDouble)));
      EXPECT_TRUE(at::equal(large, at::arange(100'000, at::kFloat) * 6));
      EXPECT_TRUE(at::equal(leaf, at::full({5}, 1.5)));
      const at::Tensor copied = at::full({4}, static_cast<double>(rank + 7), at::kDouble);
      replicas->copy_from_first({copied});
      EXPECT_TRUE(at::equal(copied, at::full({4}, 7.0, at::kDouble)));
      const at::Tensor from_last = at::full({3}, static_cast<double>(rank), at::kDouble);
      replicas->copy_from(2, {from_last, small});
      EXPECT_TRUE(at::equal(from_last, at::full({3}, 2.0, at::kDouble)));
      const at::Tensor sent = at::full({70'000}, static_cast<float>(rank)), other = at::full({2}, rank, at::kLong);
      replicas->copy_to(1, 0, {sent, other});
      EXPECT_TRUE(at::equal(sent, at::full({70'000}, rank == 0 ? 1.0F : static_cast<float>(rank))));
      EXPECT_TRUE(at::equal(other, at::full({2}, rank == 0 ? 1 : rank, at::kLong)));
      EXPECT_EQ(replicas->text_of_first(rank == 0 ? "the first" : "another"), "the first");
      EXPECT_EQ(replicas->text_of_first(rank == 0 ? "" : "another"), "");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ProcessReplicas, AProcessThatEndsIsNoticed) {
  if (!can_connect_replicas()) GTEST_SKIP() << "built without gloo";
  const Environment environment = environment_of({{"MASTER_ADDR", "localhost"}, {"MASTER_PORT", free_port()}});
  std::thread leaves([&] { connect_replicas({1, 2, 1}, environment); });
  const auto stays = connect_replicas({0, 2, 0}, environment);
  leaves.join();
  EXPECT_THROW(stays->sum({at::ones({1})}), ReplicaLost);
}

TEST(ProcessReplicas, AProcessThatWaitsSaysForWhomAndUntilWhen) {
  if (!can_connect_replicas()) GTEST_SKIP() << "built without gloo";
  const std::string port = free_port();
  const Environment environment = environment_of({{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}});
  for (const std::int64_t rank : {1, 0}) {
    const gainlens::testing::RecordingListener told;
    ::testing::internal::CaptureStderr();
    EXPECT_THROW(
        connect_replicas({rank, 2, rank}, environment, {std::chrono::seconds(1), std::chrono::milliseconds(50)}),
        RunFailed);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");  // no lines of c10d
    ASSERT_EQ(told.notices().size(), 1u);
    EXPECT_THAT(told.notices()[0], ::testing::ContainsRegex(
                                       fmt::format("process {} of 2 waits for {} at 127.0.0.1:{}, until "
                                                   "[0-9]+:[0-9]+:[0-9]+ UTC",
                                                   rank, rank == 0 ? "the others" : "process 0 and the others", port)));
  }
}

TEST(ProcessReplicas, OneProcessNeedsNoVariables) {
  EXPECT_EQ(connect_replicas({}, environment_of({}))->size(), 1);
}

TEST(ProcessReplicas, WrongVariables) {
  if (!can_connect_replicas()) GTEST_SKIP() << "built without gloo";
  using Variables = std::map<std::string, std::string>;
  for (const auto& [variables, message] :
       {std::pair{Variables{}, "MASTER_ADDR: not set"},
        std::pair{Variables{{"MASTER_ADDR", "localhost"}}, "MASTER_PORT: not set"},
        std::pair{Variables{{"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "70000"}}, "MASTER_PORT: '70000'"},
        std::pair{Variables{{"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "12x"}}, "MASTER_PORT: '12x'"}})
    EXPECT_THAT(refusal_of([&] { connect_replicas({0, 2, 0}, environment_of(variables)); }), HasSubstr(message));
}

}  // namespace replicas_test
}  // namespace gainlens::training
