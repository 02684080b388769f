#include "language/finetune_memory.h"

#include "core/error.h"
#include "models/random_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::language {
namespace finetune_memory_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

constexpr std::uint64_t logits = std::uint64_t{128} << 20;

TEST(TrainedBytes, AreThoseOfWeightsGradientsAndAShareOfTheMoments) {
  EXPECT_EQ(trained_bytes(1000, 1), 16'000u);
  EXPECT_EQ(trained_bytes(1000, 2), 12'000u);
  EXPECT_EQ(trained_bytes(1001, 2), 2u * 4 * 1001 + 2 * 4 * 501);
}

TEST(ActivationBytes, FollowTheFormula) {
  models::DecoderConfig config = testing::small_config();  // 2 layers, W 16, M 24, 4 + 2 heads of 4
  config.gated_mlp = true;
  config.qk_norm = models::QkNorm::none;
  config.post_norm = false;
  const std::uint64_t layer = 4 * 16 + 2 * 24 + 3 * 24, backward = 3 * 24 + 2 * 16;
  EXPECT_EQ(activation_bytes(config, {.tokens = 10}) - logits, 10 * 4 * (2 * layer + backward));
  EXPECT_EQ(activation_bytes(config, {.tokens = 10, .value_bytes = 2}) - logits, 10 * 2 * (2 * layer + backward));
  EXPECT_EQ(activation_bytes(config, {.tokens = 10, .recompute = true}) - logits, 10 * 4 * (layer + 2 * 16 + backward));
  config.filter = bft::FilterOptions();
  EXPECT_EQ(activation_bytes(config, {.tokens = 1}) - logits, 4 * (2 * (layer + 5 * 16 + 4 * 24) + backward));
}

TEST(CheckFits, SaysWhatWould) {
  const models::DecoderConfig config = testing::small_config();
  const TrainingMemory memory{.where = "model", .state = 1000, .longest = 100, .row_tokens = 400};
  const auto needed = [&](bool recompute, std::int64_t tokens) {
    return 1000 + activation_bytes(config, {.tokens = tokens, .recompute = recompute});
  };
  ASSERT_LT(needed(true, 400), needed(false, 400));
  EXPECT_NO_THROW(check_fits(config, memory, needed(false, 400)));
  const auto refused = [&](std::uint64_t available, const auto& message) {
    EXPECT_THAT([&] { check_fits(config, memory, available); }, ThrowsMessage<InvalidArgument>(message));
  };
  refused(needed(false, 400) - 1, AllOf(HasSubstr("give --recompute"), Not(HasSubstr("--tokens-at-once"))));
  refused(needed(true, 400) - 1, HasSubstr("give --tokens-at-once 100"));
  refused(needed(false, 100) - 1, HasSubstr("give --recompute --tokens-at-once 100"));
  refused(needed(true, 100) - 1, HasSubstr("give --recompute --max-length 90 --tokens-at-once 90"));
  refused(900, HasSubstr("give a smaller model"));
}

}  // namespace finetune_memory_test
}  // namespace gainlens::language
