#include "models/checkpoint/operations_needed.h"

#include "core/error.h"
#include "models/random_decoder.h"

#include <gtest/gtest.h>

namespace gainlens::models {
namespace operations_needed_test {

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

TEST(OperationsNeeded, LinearAttentionDoesNotGrowWithTheText) {
  DecoderConfig config = small_config();
  config.delta = {.layers = {true, false}, .key_heads = 1, .value_heads = 2, .key_dim = 6, .value_dim = 5, .kernel = 4};
  const OperationsNeeded needed = operations_needed(config, 10);
  EXPECT_EQ(needed.attention, 6 * 4 * 4 * 55);  // of one layer
  const double mlp = 3 * 24 * 16;
  const double projections = 16 * (6 + 6 + 10 + 10 + 2 + 2 + 10);
  // two heads; chunks of 64: two products of keys, the system and the corrections; three products with the state
  const double rule = 2 * (2 * 64 * (2 * 6 + 1.5 * 5) + 2 * 3 * 6 * 5);
  EXPECT_EQ(needed.products, 10 * (2 * (projections + mlp) + rule) + 2 * 10 * (16 * 16 * 2 + 8 * 16 * 2 + mlp));
}

TEST(OperationsNeeded, ShortConvolutionsReadTheirPositions) {
  DecoderConfig config = small_config();
  config.convolution = {.layers = {true, false}, .kernel = 4};
  const OperationsNeeded needed = operations_needed(config, 10);
  EXPECT_EQ(needed.attention, 6 * 4 * 4 * 55);  // of one layer
  const double mlp = 3 * 24 * 16;
  EXPECT_EQ(needed.products, 2 * 10 * (4 * 16 * 16 + mlp + 4 * 16) + 2 * 10 * (16 * 16 * 2 + 8 * 16 * 2 + mlp));
}

TEST(OperationsNeeded, ATokenPassesOnlyItsExperts) {
  DecoderConfig config = small_config();
  config.experts = {.count = 8, .per_token = 2, .width = 24};
  const double attention_weights = 16 * 16 * 2 + 8 * 16 * 2;
  EXPECT_EQ(operations_needed(config, 1).products, 2 * 2 * (attention_weights + 8 * 16 + 2 * 3 * 24 * 16));
}

}  // namespace operations_needed_test
}  // namespace gainlens::models
