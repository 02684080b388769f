#include "sweep/run_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::sweep {
namespace default_lengths_test {

using ::testing::ElementsAre;

TEST(DefaultLengths, AreThoseThatTheModelHasPositionsFor) {
  EXPECT_THAT(default_lengths(std::nullopt), ElementsAre(1024, 2048, 4096, 6144, 8192, 10240));
  EXPECT_THAT(default_lengths(131072), ElementsAre(1024, 2048, 4096, 6144, 8192, 10240));
  EXPECT_THAT(default_lengths(8192), ElementsAre(1024, 2048, 4096, 6144, 8192));
  EXPECT_THAT(default_lengths(4096), ElementsAre(1024, 2048, 4096));
}

TEST(DefaultLengths, OfAModelWithFewPositionsAreItsParts) {
  EXPECT_THAT(default_lengths(2048), ElementsAre(512, 1024, 2048));
  EXPECT_THAT(default_lengths(1024), ElementsAre(256, 512, 1024));
  EXPECT_THAT(default_lengths(10), ElementsAre(5, 10));
  EXPECT_THAT(default_lengths(4), ElementsAre(4));
}

TEST(DefaultLengths, TheLongestThatATextHasChunksFor) {
  const data::ChunkPlan plain{.lengths = {}, .samples = 5}, with_bos{.lengths = {}, .samples = 5, .bos = 1};
  EXPECT_EQ(longest_length(5000, plain, 10240), 1000);
  EXPECT_EQ(longest_length(4999, plain, 10240), 999);
  EXPECT_EQ(longest_length(5000, with_bos, 10240), 1001);
  EXPECT_EQ(longest_length(1 << 20, plain, 10240), 10240);
  EXPECT_EQ(longest_length(0, plain, 10240), 0);
  EXPECT_EQ(longest_length(4, with_bos, 10240), 1);
  for (const auto& plan : {plain, with_bos})
    EXPECT_EQ(longest_length(5000, {.samples = 5, .nested = true, .spread = true, .bos = plan.bos}, 10240),
              longest_length(5000, plan, 10240));
}

}  // namespace default_lengths_test
}  // namespace gainlens::sweep
