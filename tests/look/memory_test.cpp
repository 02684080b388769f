// Memory grows with the number of tokens, and not with its square.
#include "kernels/counted_memory.h"
#include "look/look_at_prompt.h"
#include "models/random_decoder.h"

#include <gtest/gtest.h>

namespace gainlens::look {
namespace memory_test {

TEST(MemoryOfALook, IsLinearInTheNumberOfTokens) {
  models::DecoderConfig config = gainlens::testing::small_config();
  config.max_positions = 4096;
  models::Decoder model = gainlens::testing::random_decoder(config, at::kFloat);
  const auto peak = [&](std::int64_t length) {
    Prompt prompt;
    for (std::int64_t i = 0; i < length; ++i)
      prompt.tokens.push_back(static_cast<tokenizers::TokenId>((i * 17 + i / 50) % 50));
    LookOptions options;
    options.lens.emplace();
    options.pair = interventions::AnswerPair{1, 2};
    options.query = ChosenQuery{1, 3, length - 2};
    options.segments = {{"all", 0, length}};
    options.segment_queries = 4;
    return kernels::testing::peak_bytes_of([&] { look_at(model, prompt, options); });
  };
  // With a constant part and a part in proportion to T, the second doubling adds twice what the first one adds; with a
  // part in T^2 it adds four times as much.
  const auto shortest = peak(512), middle = peak(1024), longest = peak(2048);
  EXPECT_GT(shortest, 0);
  EXPECT_LT(static_cast<double>(longest - middle), 2.3 * static_cast<double>(middle - shortest));
}

}  // namespace memory_test
}  // namespace gainlens::look
