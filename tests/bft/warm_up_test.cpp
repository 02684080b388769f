#include "bft/warm_up.h"

#include <gtest/gtest.h>

namespace gainlens::bft {
namespace warm_up_test {

TEST(WarmUp, CountsStepsOrEpochs) {
  FilterOptions options{.warm_up = 3};
  for (std::int64_t step = 0; step < 8; ++step) EXPECT_EQ(share_at(options, step, 2), step < 3 ? 0 : 1) << step;
  options.warm_up_unit = WarmUpUnit::epochs;
  for (std::int64_t step = 0; step < 8; ++step) EXPECT_EQ(share_at(options, step, 2), step < 6 ? 0 : 1) << step;
  options.warm_up_form = WarmUp::blend;
  for (std::int64_t step = 0; step < 8; ++step)
    EXPECT_DOUBLE_EQ(share_at(options, step, 2), step < 6 ? static_cast<double>(step) / 6 : 1) << step;
  options.warm_up = 0;
  EXPECT_EQ(share_at(options, 0, 2), 1);
}

TEST(WarmUp, MayOutlastATraining) {
  FilterOptions options{.warm_up = 4};
  EXPECT_EQ(why_never_in_force(options, 5, 2), "");
  EXPECT_EQ(why_never_in_force(options, 4, 2), "its warm-up takes 4 steps (--warm-up), and the training has 4");
  options.warm_up_unit = WarmUpUnit::epochs;
  EXPECT_EQ(why_never_in_force(options, 9, 2), "");
  EXPECT_EQ(why_never_in_force(options, 8, 2), "its warm-up takes 4 epochs (--warm-up), and the training has 4");
  options.warm_up_form = WarmUp::blend;  // a part of it acts
  EXPECT_EQ(why_never_in_force(options, 8, 2), "");
}

TEST(RunningMemory, WeighsAllBatchesAlikeAtFirst) {
  EXPECT_EQ(running_memory(0), 0);
  EXPECT_EQ(running_memory(1), 0.5);
  EXPECT_EQ(running_memory(3), 0.75);
  EXPECT_EQ(running_memory(1000), 0.99);
}

}  // namespace warm_up_test
}  // namespace gainlens::bft
