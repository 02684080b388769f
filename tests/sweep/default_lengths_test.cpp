#include "sweep/run_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::sweep {
namespace {

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

}  // namespace
}  // namespace gainlens::sweep
