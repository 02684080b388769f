#include "models/checkpoint/operations_needed.h"

#include "core/error.h"
#include "models/random_decoder.h"

#include <gtest/gtest.h>

namespace gainlens::models {
namespace {

using gainlens::testing::small_config;

TEST(OperationsNeeded, ByHand) {
  const DecoderConfig config = small_config();  // 2 layers, W 16, H 4, Hk 2, d 4, M 24, V 50
  const OperationsNeeded needed = operations_needed(config, 10);
  EXPECT_EQ(needed.products, 2 * 10 * 2 * (16 * 16 * 2 + 8 * 16 * 2 + 3 * 24 * 16));
  EXPECT_EQ(needed.attention, 2 * 6 * 4 * 4 * 55);
  EXPECT_EQ(needed.likelihood, 2 * 10 * 16 * 50);
  EXPECT_THROW(operations_needed(config, 0), InvalidArgument);
}

TEST(OperationsNeeded, AWindowHidesPairs) {
  DecoderConfig config = small_config();
  config.window = {0, 3};
  // The second layer: 1, 2, then 3 keys for each of 8 queries.
  EXPECT_EQ(operations_needed(config, 10).attention, 6 * 4 * 4 * (55 + 1 + 2 + 8 * 3));
}

TEST(OperationsNeeded, ATokenPassesOnlyItsExperts) {
  DecoderConfig config = small_config();
  config.experts = {.count = 8, .per_token = 2, .width = 24};
  const double attention_weights = 16 * 16 * 2 + 8 * 16 * 2;
  EXPECT_EQ(operations_needed(config, 1).products, 2 * 2 * (attention_weights + 8 * 16 + 2 * 3 * 24 * 16));
}

}  // namespace
}  // namespace gainlens::models
