#include "models/checkpoint/describe.h"

#include "models/decoder/attention_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::models {
namespace describe_test {

using ::testing::ElementsAre;
using Kinds = std::vector<std::string>;

const std::filesystem::path golden = GAINLENS_SOURCE_DIR "/tests/golden";

DecoderConfig with_windows(std::vector<std::int64_t> window) {
  DecoderConfig config;
  config.layers = std::ssize(window);
  config.window = std::move(window);
  return config;
}

Kinds kinds_of(std::vector<std::int64_t> window) {
  return attention_layout(with_windows(std::move(window))).kinds();
}

TEST(Describe, LayersOfOneKindAreOneRun) {
  EXPECT_EQ(layer_runs_text(kinds_of({0, 0, 0})), "0-2 global");
  EXPECT_EQ(layer_runs_text({"global"}), "0 global");
  EXPECT_EQ(layer_runs_text({"window:4", "window:4", "window:8"}), "0-1 window:4, 2 window:8");
}

TEST(Describe, APatternIsToldOnce) {
  EXPECT_EQ(layer_runs_text(kinds_of({512, 512, 0, 512, 512, 0})),
            "0-1 window:512, 2 global, and so on every 3 layers");
  EXPECT_EQ(layer_runs_text(kinds_of({512, 512, 0, 512, 512, 0, 512})),
            "0-1 window:512, 2 global, and so on every 3 layers")
      << "the last repetition may be cut short";
  EXPECT_EQ(layer_runs_text(kinds_of({8, 0, 8})), "0 window:8, 1 global, 2 window:8") << "a pattern must be repeated";
  EXPECT_EQ(layer_runs_text(kinds_of({8, 0, 8, 8})), "0 window:8, 1 global, 2-3 window:8");
}

TEST(Describe, LayersOfLinearAttentionAreNamed) {
  DecoderConfig config = with_windows({0, 0, 0, 0});
  config.delta.layers = {true, true, true, false};
  EXPECT_EQ(layer_runs_text(attention_layout(config).kinds()), "0-2 gated delta rule, 3 global");
  config.delta = {};
  config.convolution.layers = {true, true, true, false};
  EXPECT_EQ(layer_runs_text(attention_layout(config).kinds()), "0-2 short convolution, 3 global");
}

TEST(Describe, RotaryOfEachKindOfLayer) {
  DecoderConfig config = with_windows({512, 0});
  config.rope.base = 1e6;
  const auto texts = [&] {
    std::vector<std::string> all;
    for (const auto& [kind, text] : position_encodings(config)) all.push_back(kind + ": " + text);
    return all;
  };
  EXPECT_THAT(texts(), ElementsAre("all layers: rotary, base 1000000"));
  config.window_rope = RopeConfig{};
  config.rope.scaling = RopeScaling::linear;
  config.rope.factor = 8;
  EXPECT_THAT(texts(), ElementsAre("global layers: rotary, base 1000000, positions divided by 8",
                                   "window layers: rotary, base 10000"));
  config.window = {0, 0};
  EXPECT_THAT(texts(), ElementsAre("all layers: rotary, base 1000000, positions divided by 8"))
      << "no layer has a window";
  config.rope = {
      .base = 500000, .rotated = 0.25, .scaling = RopeScaling::llama3, .factor = 8, .original_max_positions = 8192};
  EXPECT_THAT(
      texts(),
      ElementsAre(
          "all layers: rotary, base 500000, on the first 25% of each head, llama3 scaling by 8 from 8192 positions"));
  config.rope = {.rotated = 0.5, .scaling = RopeScaling::proportional};
  EXPECT_THAT(texts(), ElementsAre("all layers: rotary, base 10000, of the first 50% of the pairs of each head"));
  config.rope.factor = 8;
  EXPECT_THAT(texts(), ElementsAre("all layers: rotary, base 10000, of the first 50% of the pairs of each head, "
                                   "positions divided by 8"));
  config.rope = {.base = 500000};
  config.delta.layers = {true, false};
  EXPECT_THAT(texts(), ElementsAre(::testing::StartsWith("global layers: rotary, base 500000")))
      << "linear attention does not rotate";
  config.delta = {};
  config.rope = {};
  config.window_rope.reset();
  config.window = {512, 0};
  config.unrotated = {false, true};
  EXPECT_THAT(texts(), ElementsAre("global layers: none", "window layers: rotary, base 10000"));
  config.window = {0, 0};
  EXPECT_THAT(texts(), ElementsAre("layers: 0 rotary, base 10000, 1 none"));
  config.unrotated = {true, true};
  EXPECT_THAT(texts(), ElementsAre("all layers: none"));
  config.positions = Positions::learned;
  EXPECT_THAT(texts(), ElementsAre("all layers: learned vectors, added to the embedding"));
}

TEST(Describe, SizesAndTypesOfASafetensorsFolder) {
  const auto folder = golden / "models/llama";
  const auto found = describe_checkpoint(open_checkpoint(folder));
  EXPECT_EQ(found.format, "safetensors");
  EXPECT_EQ(found.files, 2u);
  EXPECT_EQ(found.weight_files, 1u);
  EXPECT_EQ(found.bytes_on_disk, std::filesystem::file_size(folder / "config.json") +
                                     std::filesystem::file_size(folder / "model.safetensors"));
  ASSERT_EQ(found.dtypes.size(), 1u);
  EXPECT_EQ(found.dtypes.begin()->second.tensors, found.tensors);
}

TEST(Describe, TypesOfAQuantisedGguf) {
  const auto file = golden / "gguf/llama-quantised.gguf";
  const auto found = describe_checkpoint(open_checkpoint(file));
  EXPECT_EQ(found.format, "GGUF version 3");
  EXPECT_EQ(found.bytes_on_disk, std::filesystem::file_size(file));
  EXPECT_TRUE(found.dtypes.contains("Q8_0"));
  EXPECT_TRUE(found.dtypes.contains("F32")) << "norms";
}

}  // namespace describe_test
}  // namespace gainlens::models
