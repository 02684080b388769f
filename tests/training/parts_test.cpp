// The small parts of the trainer: schedule, data order, best value, state on disk.
#include "core/error.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"
#include "training/schedule.h"
#include "training/training_folder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

namespace gainlens::training {
namespace parts_test {

TEST(Schedule, WarmsUpThenFallsAlongHalfACosine) {
  const Schedule schedule{Decay::cosine, 3, 14, 0.2};
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 0), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 2), 0.75);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 3), 1);
  EXPECT_NEAR(learning_rate_factor(schedule, 8), 0.6, 1e-12);  // half way: the mean of 1 and 0.2
  EXPECT_NEAR(learning_rate_factor(schedule, 13), 0.2, 1e-12);
  EXPECT_NEAR(learning_rate_factor(schedule, 99), 0.2, 1e-12);
}

TEST(Schedule, StaysConstantAfterTheWarmUp) {
  const Schedule schedule{Decay::constant, 1, 10, 0.2};
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 0), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 1), 1);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 9), 1);
}

TEST(Schedule, NamesAreChecked) {
  EXPECT_EQ(parse_decay("constant"), Decay::constant);
  EXPECT_EQ(parse_decay("cosine"), Decay::cosine);
  EXPECT_THAT([] { parse_decay("cosin"); },
              ::testing::ThrowsMessage<InvalidArgument>(::testing::HasSubstr("did you mean 'cosine'")));
}

TEST(DataOrder, EachEpochIsAPermutationOfItsOwn) {
  DataOrder order(7, 50);
  std::vector<std::int64_t> first, second;
  for (std::int64_t i = 0; i < 50; ++i) first.push_back(order.at(i));
  for (std::int64_t i = 50; i < 100; ++i) second.push_back(order.at(i));
  EXPECT_NE(first, second);
  for (auto* epoch : {&first, &second}) {
    auto sorted = *epoch;
    std::sort(sorted.begin(), sorted.end());
    for (std::int64_t i = 0; i < 50; ++i) EXPECT_EQ(sorted[static_cast<std::size_t>(i)], i);
  }
  DataOrder later(7, 50), other(8, 50);  // a resumed training first asks for a position in the middle
  EXPECT_EQ(later.at(73), second[23]);
  EXPECT_EQ(later.at(3), first[3]);
  std::vector<std::int64_t> of_other_seed;
  for (std::int64_t i = 0; i < 50; ++i) of_other_seed.push_back(other.at(i));
  EXPECT_NE(of_other_seed, first);
}

TEST(BestValue, KeepsTheSmallestAndRunsOutOfPatience) {
  BestValue best(2);
  EXPECT_FALSE(best.any());
  EXPECT_TRUE(best.observe(10, 3));
  EXPECT_FALSE(best.observe(20, 3));
  EXPECT_FALSE(best.exhausted());
  EXPECT_TRUE(best.observe(30, 2));
  EXPECT_FALSE(best.observe(40, std::numeric_limits<double>::quiet_NaN()));
  BestValue resumed(2);
  resumed.restore(best.to_json());
  EXPECT_FALSE(resumed.observe(50, 2.5));
  EXPECT_TRUE(resumed.exhausted());
  EXPECT_EQ(resumed.step(), 30);
  EXPECT_EQ(resumed.value(), 2);
  BestValue forever(0);
  for (int i = 0; i < 100; ++i) forever.observe(i, 5);
  EXPECT_FALSE(forever.exhausted());
  EXPECT_THROW(BestValue(-1), InvalidArgument);
  EXPECT_THROW(forever.restore(Json{{"step", 1}}), InvalidArgument);
}

TEST(TrainingState, ComesBackBitForBit) {
  const gainlens::testing::TemporaryFolder folder;
  TrainingState state;
  state.step = 123;
  state.notes = {{"history", {1.0 / 3, 2}}};
  state.tensors["a"] = at::randn({3, 2}).t();  // not contiguous
  state.tensors["b"] = at::randn({4}, at::kDouble);
  state.tensors["generator"] = at::arange(5, at::kByte);
  save_training_state(folder.path() / "state", state);
  const TrainingState found = load_training_state(folder.path() / "state");
  EXPECT_EQ(found.step, 123);
  EXPECT_EQ(found.notes, state.notes);
  ASSERT_EQ(found.tensors.size(), 3u);
  for (const auto& [name, tensor] : state.tensors) EXPECT_TRUE(at::equal(found.tensors.at(name), tensor)) << name;
}

TEST(TrainingState, RefusesOtherFiles) {
  const gainlens::testing::TemporaryFolder folder;
  const auto file = folder.path() / "state";
  EXPECT_THROW(load_training_state(file), InvalidArgument);
  std::ofstream(file) << "no tensors";
  EXPECT_THROW(load_training_state(file), InvalidArgument);

  TrainingState state;
  state.step = 3;
  state.notes = {{"best", 1}};
  state.tensors["a"] = at::ones({64});
  save_training_state(file, state);
  const std::string bytes = gainlens::testing::bytes_of(file);
  const std::size_t step = bytes.find("\"step\":\"3\"");
  ASSERT_NE(step, std::string::npos);
  for (const std::size_t place : {bytes.size() - 3, step + 8}) {  // in a weight; in the step
    std::string damaged = bytes;
    damaged[place] = static_cast<char>(damaged[place] ^ 1);
    std::ofstream(file, std::ios::binary) << damaged;
    EXPECT_THAT([&] { load_training_state(file); },
                ::testing::ThrowsMessage<InvalidArgument>(::testing::HasSubstr("has changed since it was written")));
  }
}

}  // namespace parts_test
}  // namespace gainlens::training
