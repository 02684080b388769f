#include "recommend/training_batch.h"

#include "recommend/small_data.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace gainlens::recommend {
namespace training_batch_test {

constexpr std::int64_t mask = 24;
constexpr HistoryView masked{.positions = 5, .mask = mask, .mask_probability = 0.2};

std::vector<std::int64_t> numbers_of(const at::Tensor& x) {
  return {x.const_data_ptr<std::int64_t>(), x.const_data_ptr<std::int64_t>() + x.numel()};
}

TEST(TrainingBatch, WithoutAMaskAsksEachPositionForTheNextItem) {
  const data::LeaveOneOut split = split_of({{1, 2, 3, 4, 5, 6}, {1, 2, 3}, {7, 8, 9, 7}}, 9);
  const std::vector<std::int64_t> users{0, 1, 2};
  const TrainingBatch batch = training_batch(split, users, {1, 3}, {.positions = 2}, 0);
  EXPECT_EQ(numbers_of(batch.inputs.items), (std::vector<std::int64_t>{7}));
  EXPECT_EQ(batch.targets, (std::vector<std::int64_t>{8}));
  EXPECT_FALSE(batch.asked.defined());
  EXPECT_EQ(batch.all_targets, 3);
  EXPECT_EQ(batch.positions_before, 2);
  EXPECT_EQ(max_trained_positions(split, 0, {.positions = 2}), 2);
  EXPECT_EQ(max_trained_positions(split, 1, {.positions = 2}), 0);
}

TEST(TrainingBatch, WithAMaskAsksForWhatItHides) {
  const data::LeaveOneOut split = ring_of(400, 23);
  double drawn = 0, items = 0;
  std::vector<std::int64_t> of_users, targets;
  for (std::int64_t user = 0; user < split.users(); ++user) {
    const std::vector<std::int64_t> alone{user};
    const TrainingBatch batch = training_batch(split, alone, {0, 1}, masked, 2);
    const auto all = split.training(user);
    if (all.size() < 2) {
      EXPECT_EQ(batch.inputs.positions(), 0);
      continue;
    }
    const auto seen = all.last(std::min<std::size_t>(all.size(), 5));
    const auto length = std::ssize(seen);
    std::vector<std::int64_t> ids = numbers_of(batch.inputs.items), expected;
    const std::vector<std::int64_t> asked = numbers_of(batch.asked);
    of_users.insert(of_users.end(), ids.begin(), ids.end());
    targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
    ASSERT_TRUE(batch.inputs.sequences() == 1 || batch.inputs.sequences() == 2);
    for (std::int64_t i = 0; i < batch.inputs.sequences(); ++i)
      expected.insert(expected.end(), seen.begin(), seen.end());
    EXPECT_EQ(asked.back(), batch.inputs.positions() - 1);
    EXPECT_TRUE(asked.size() == 1 || asked[asked.size() - 2] < batch.inputs.positions() - length)
        << "the last item alone";
    ASSERT_EQ(asked.size(), batch.targets.size());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      EXPECT_EQ(ids[static_cast<std::size_t>(asked[i])], mask);
      ids[static_cast<std::size_t>(asked[i])] = batch.targets[i];
    }
    EXPECT_EQ(ids, expected);
    EXPECT_LE(batch.inputs.positions(), max_trained_positions(split, user, masked));
    drawn += static_cast<double>(asked.size() - 1);
    items += static_cast<double>(length);
  }
  EXPECT_NEAR(drawn / items, 0.2, 0.03);
  // Of a batch, whatever users are in it; of another epoch, others.
  std::vector<std::int64_t> users(static_cast<std::size_t>(split.users()));
  std::iota(users.begin(), users.end(), 0);
  const TrainingBatch whole = training_batch(split, users, {0, split.users()}, masked, 2);
  EXPECT_EQ(numbers_of(whole.inputs.items), of_users);
  EXPECT_EQ(whole.targets, targets);
  EXPECT_EQ(whole.all_targets, std::ssize(targets));
  EXPECT_NE(numbers_of(training_batch(split, users, {0, split.users()}, masked, 3).inputs.items), of_users);
  const TrainingBatch part = training_batch(split, users, {100, 200}, masked, 2);
  EXPECT_EQ(part.all_targets, whole.all_targets);
  const std::vector<std::int64_t> of_part = numbers_of(part.inputs.items);
  EXPECT_TRUE(std::equal(of_part.begin(), of_part.end(), of_users.begin() + part.positions_before));
}

TEST(TrainingBatch, AHiddenItemIsInNoInput) {
  const std::vector<std::int64_t> user{0};
  std::vector<data::ItemId> sequence{1, 2, 3, 4, 5, 6, 7};
  const auto batch_of = [&] { return training_batch(split_of({sequence}, 23), user, {0, 1}, masked, 1); };
  const TrainingBatch before = batch_of();
  sequence[4] = 9;  // the last training item: hidden in the last copy
  const TrainingBatch after = batch_of();
  const std::int64_t last = before.inputs.begin[static_cast<std::size_t>(before.inputs.sequences()) - 1];
  EXPECT_TRUE(at::equal(before.inputs.items.slice(0, last), after.inputs.items.slice(0, last)));
  EXPECT_EQ(before.targets.back(), 5);
  EXPECT_EQ(after.targets.back(), 9);
}

}  // namespace training_batch_test
}  // namespace gainlens::recommend
