// Numbers by hand; tests/journeys/memory_test.cpp compares the estimate with peaks of the program.
#include "models/checkpoint/memory_needed.h"

#include "core/error.h"
#include "kernels/linear/product_kernel.h"
#include "models/checkpoint/model_size.h"
#include "models/random_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace gainlens::models {
namespace memory_needed_test {

using gainlens::testing::small_config;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(MemoryNeeded, TermsByHand) {
  const DecoderConfig config = small_config();  // 2 layers, W 16, H 4, Hk 2, d 4, M 24, V 50
  const MemoryNeeded needed = memory_needed(config, {.positions = 10});
  // Norms and the embedding as they are; seven projections of each layer, and the head, with 64 outputs.
  EXPECT_EQ(needed.weights, 4 * (2 * (2 * 16 + 64 * (6 * 16 + 24)) + 50 * 16 + 16 + 64 * 16));
  EXPECT_EQ(needed.sequences, 10 * 4 * (16 + 4) + 10 * 2 * 4 * 4 * 3);  // streams, tables; packed heads: both
  // input, q, k, v, output; 20 numbers for each query and head; the 8 weights twice in double
  EXPECT_EQ(needed.attention, 10 * (4 * (16 + 16 + 16 + 16) + 4 * 4 * 20 + 4 * 8 * 8 * 2));
  // values of the layer; three streams; the neurons and the result of one block
  EXPECT_EQ(needed.mlp, 10 * 8 * 4 + 10 * 16 * 4 * 3 + 10 * (24 + 16) * 4);
  // the stream twice; one segment; two tiles of 256 logits and the rows of two workers
  EXPECT_EQ(needed.likelihood, 10 * 16 * 4 * 2 + 10 * 32 + 2 * 192 * 4 * (16 + 2 * 256));
  EXPECT_EQ(needed.total(), needed.process + needed.weights + needed.sequences + needed.likelihood);
  EXPECT_EQ(needed.beyond_process(), needed.total() - needed.process);
}

// The estimate is the same on every processor because of this: libtorch, which needs much more memory for a product, is
// taken for float64 alone, whatever the processor.
TEST(MemoryNeeded, LibtorchMultipliesInFloat64Alone) {
  EXPECT_EQ(kernels::product_kernel(at::kDouble), kernels::ProductKernel::libtorch);
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf})
    EXPECT_NE(kernels::product_kernel(type), kernels::ProductKernel::libtorch) << type;
}

TEST(MemoryNeeded, ASharedExpertNeedsItsOutputTwice) {
  DecoderConfig config = small_config();
  config.experts = {.count = 4, .per_token = 1, .width = 2};
  const MemoryNeeded without = memory_needed(config, {.positions = 1000});
  config.experts.shared_width = 32;
  const MemoryNeeded needed = memory_needed(config, {.positions = 1000});
  // gate, up and down of each layer; a narrow projection is stored with 64 outputs
  EXPECT_EQ(needed.weights - without.weights, 2 * 4 * (64 * 16 * 2 + 64 * 32));
  // values of the layer; four streams; the output and its product with the score; the neurons of one block
  EXPECT_EQ(needed.mlp, 1000 * 8 * 4 + 1000 * 16 * 4 * (4 + 2) + 512 * 32 * 4);
}

TEST(MemoryNeeded, LinearAttentionNeedsItsStreamsAndOneBlock) {
  DecoderConfig config = small_config();
  const MemoryNeeded attention = memory_needed(config, {.positions = 1000});
  config.delta = {
      .layers = {true, false}, .key_heads = 2, .value_heads = 4, .key_dim = 60, .value_dim = 50, .kernel = 4};
  const MemoryNeeded needed = memory_needed(config, {.positions = 1000});
  // input and result; of 512 positions queries, keys, values, and what becomes of the result
  EXPECT_EQ(needed.attention, 1000 * 16 * 4 * 2 + 512 * (120 * 2 + 200 * 6 + 16 * 2) * 4);
  // With long keys and values a chunk of 64 positions needs more: the rule itself, with its pairs and states.
  DecoderConfig large = config;
  large.delta.key_dim = large.delta.value_dim = 1000;
  EXPECT_EQ(memory_needed(large, {.positions = 1000}).attention,
            1000 * 16 * 4 * 2 + 512 * (2000 * 4 + 4000 * 2 + 16 * 2) * 4 +
                4 * (64 * (1000 * 4 + 1000 * 5 + 64 * 5) + 1000 * 1000 * 3) * 4);
  // The first layer has no query, key, value and output. It has seven other projections, with 64 outputs at least.
  const std::int64_t removed = 4 * 64 * 16;
  EXPECT_EQ(static_cast<std::int64_t>(needed.weights) - static_cast<std::int64_t>(attention.weights),
            4 * (16 * (128 + 128 + 256 + 256 + 64 + 64) + 64 * 200 + (120 * 2 + 200) * 4 + 4 + 4 + 50 - removed));
  // One layer of two keeps numbers of queries.
  MemoryOptions all{.positions = 1000};
  all.per_query = true;
  EXPECT_EQ(2 * (memory_needed(config, all).sequences - needed.sequences),
            memory_needed(small_config(), all).sequences - attention.sequences);
}

TEST(MemoryNeeded, ShortConvolutionsNeedTheirStreamsAndOneBlock) {
  DecoderConfig config = small_config();
  const MemoryNeeded attention = memory_needed(config, {.positions = 1000});
  config.convolution = {.layers = {true, false}, .kernel = 4, .bias = true};
  const MemoryNeeded needed = memory_needed(config, {.positions = 1000});
  // Four projections with 64 outputs at least and their biases, and the convolution with its bias, in place of query,
  // key, value and output.
  EXPECT_EQ(static_cast<std::int64_t>(needed.weights) - static_cast<std::int64_t>(attention.weights),
            4 * (4 * (64 * 16 + 16) + 16 * 4 + 16 - 4 * 64 * 16));
  // The streams of a wide model are larger than what its few heads need.
  config.width = 4096;
  EXPECT_EQ(memory_needed(config, {.positions = 1000}).attention, (1000 * 3 + 512 * 9) * 4096 * 4);
}

TEST(MemoryNeeded, NoTokensNeedTheWeightsAlone) {
  const MemoryNeeded needed = memory_needed(small_config(), {.positions = 0});
  EXPECT_EQ(needed.sequences + needed.attention + needed.mlp, 0);
  EXPECT_EQ(needed.total(), needed.process + needed.weights + needed.likelihood);
}

TEST(MemoryNeeded, OptionsChangeTheirTerms) {
  const DecoderConfig config = small_config();
  const MemoryOptions plain{.positions = 100};
  const MemoryNeeded needed = memory_needed(config, plain);
  MemoryOptions changed = plain;
  changed.dtype = ComputeDtype::bfloat16;
  EXPECT_EQ(memory_needed(config, changed).weights, needed.weights / 2);
  changed = plain;
  changed.stream_weights = true;
  EXPECT_LT(memory_needed(config, changed).weights, needed.weights);
  changed.positions_together = 300;
  EXPECT_EQ(memory_needed(config, changed).sequences, 3 * needed.sequences);
  changed = plain;
  changed.stop_at_layer = 1;
  EXPECT_EQ(memory_needed(config, changed).likelihood, 0);
  changed.likelihood = false;
  changed.stop_at_layer = 2;  // all layers of this model
  EXPECT_EQ(memory_needed(config, changed).weights, needed.weights);
  changed.stop_at_layer = 1;
  const std::uint64_t one_layer = needed.weights - memory_needed(config, changed).weights;
  EXPECT_GT(one_layer, needed.weights / 4);
  EXPECT_LT(one_layer, needed.weights / 2);
  changed = plain;
  changed.likelihood = false;
  EXPECT_EQ(memory_needed(config, changed).likelihood, 0);
  changed = plain;
  changed.statistics = false;
  EXPECT_LT(memory_needed(config, changed).attention, needed.attention);
  EXPECT_EQ(memory_needed(config, changed).sequences, 100 * 4 * (16 + 4));
  changed = plain;
  changed.per_query = true;
  EXPECT_EQ(memory_needed(config, changed).sequences, needed.sequences + 2 * 4 * 100 * (18 + 8) * 8);
  changed.measured_layers = 1;
  EXPECT_EQ(memory_needed(config, changed).sequences, needed.sequences + 4 * 100 * (18 + 8) * 8);
}

TEST(MemoryNeeded, ALayerWithItsOwnKernelOptionsKeepsItsOwnPackedHeads) {
  DecoderConfig config = small_config();
  const std::uint64_t packed = 10 * 2 * 4 * 4 * 3, streams = 10 * 4 * (16 + 4);
  config.window = {0, 7};
  EXPECT_EQ(memory_needed(config, {.positions = 10}).sequences, streams + 2 * packed);
  config.window = {0, 0};
  config.sink_logits = true;
  EXPECT_EQ(memory_needed(config, {.positions = 10}).sequences, streams + 2 * packed);
}

TEST(MemoryNeeded, NumbersThatAreTooLargeAreRefused) {
  EXPECT_THAT([] { memory_needed(small_config(), {.positions = -1}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("memory needed: -1 is out of range")));
  EXPECT_THAT([] { memory_needed(small_config(), {.positions = std::numeric_limits<std::int64_t>::max()}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("memory needed: ")));
}

}  // namespace memory_needed_test
}  // namespace gainlens::models
