#include "sweep/memory_warning.h"

#include "core/quantity.h"
#include "models/random_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace gainlens::sweep {
namespace memory_warning_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Weights of 100 MB in float32, in 10 layers; activations of 1024 tokens are smaller.
models::DecoderConfig large_config() {
  models::DecoderConfig config = gainlens::testing::small_config();
  config.layers = 10;
  config.window.assign(10, 0);
  config.width = 512;
  config.mlp_width = 1600;
  return config;
}

std::uint64_t needed(const models::MemoryOptions& options) {
  return memory_needed(large_config(), options).beyond_process();
}

TEST(MemoryWarning, ThereIsNoneWhereTheSweepFitsOrNothingIsKnown) {
  const models::MemoryOptions options{.positions = 1024};
  EXPECT_EQ(memory_warning(large_config(), options, {1024}, needed(options)), std::nullopt);
  EXPECT_EQ(memory_warning(large_config(), options, {1024}, std::numeric_limits<std::uint64_t>::max()), std::nullopt);
  EXPECT_EQ(memory_warning(large_config(), options, {1024}, std::nullopt), std::nullopt);
}

TEST(MemoryWarning, NamesBothNumbersAndWhatHelps) {
  const models::MemoryOptions options{.positions = 1024};
  const std::uint64_t available = needed(options) - 1;
  const auto text = memory_warning(large_config(), options, {512, 1024}, available);
  ASSERT_TRUE(text);
  EXPECT_THAT(
      *text,
      AllOf(HasSubstr("the sweep needs about " + format_bytes(needed(options)) + " of memory for 1k tokens, and " +
                      format_bytes(available) + " are available"),
            HasSubstr(format_bytes(needed({.dtype = models::ComputeDtype::bfloat16, .positions = 1024})) +
                      " with --dtype bfloat16"),
            HasSubstr(format_bytes(needed({.positions = 1024, .stream_weights = true})) + " with --stream-weights"),
            HasSubstr(" with --stop-at-layer 8 (the first layers alone, no likelihood)")));
  EXPECT_THAT(*text, Not(HasSubstr("\n")));
}

TEST(MemoryWarning, NamesOnlyWhatIsEnough) {
  const models::MemoryOptions options{.positions = 1024};
  const std::uint64_t available = needed({.dtype = models::ComputeDtype::bfloat16, .positions = 1024}) - 1;
  const auto text = memory_warning(large_config(), options, {1024}, available);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, AllOf(HasSubstr("--stream-weights"), Not(HasSubstr("bfloat16")), Not(HasSubstr("--lengths"))));
}

TEST(MemoryWarning, NamesTheMostLayersThatFit) {
  const models::MemoryOptions options{.positions = 1024};
  models::MemoryOptions fewer = options;
  fewer.stop_at_layer = fewer.measured_layers = 7;
  const std::uint64_t available = needed(fewer) + needed(fewer) / 10;
  auto text = memory_warning(large_config(), options, {1024}, available);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr(format_bytes(needed(fewer)) + " with --stop-at-layer 7"));
  // A tenth of room is missing.
  text = memory_warning(large_config(), options, {1024}, available - 1);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr(" with --stop-at-layer 6"));
  // A sweep of some layers must reach the last of them.
  models::MemoryOptions some = options;
  some.measured_layers = 3;
  text = memory_warning(large_config(), some, {1024}, available);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, Not(HasSubstr("--stop-at-layer")));
}

TEST(MemoryWarning, SaysTheLeastWhereNothingIsEnough) {
  const auto text = memory_warning(large_config(), {.positions = 1024}, {1024}, 1000);
  ASSERT_TRUE(text);
  EXPECT_THAT(
      *text,
      AllOf(HasSubstr("1000 B are available"),
            HasSubstr(format_bytes(needed(
                          {.dtype = models::ComputeDtype::bfloat16, .positions = 1024, .stream_weights = true})) +
                      " with --stream-weights and a dtype of two bytes together")));
}

TEST(MemoryWarning, TriesTheLengthsThenHalvesOfTheShortest) {
  models::MemoryOptions options{.positions = 1024, .stream_weights = true};
  options.dtype = models::ComputeDtype::bfloat16;
  models::MemoryOptions shorter = options;
  shorter.positions = shorter.positions_together = 256;
  for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{1024}, {256, 1024}}) {
    const auto text = memory_warning(large_config(), options, lengths, needed(shorter) + needed(shorter) / 10);
    ASSERT_TRUE(text);
    EXPECT_THAT(*text, HasSubstr(format_bytes(needed(shorter)) + " with --lengths up to 256"));
  }
}

}  // namespace memory_warning_test
}  // namespace gainlens::sweep
