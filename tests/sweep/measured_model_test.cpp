#include "sweep/measured_model.h"

#include "core/error.h"
#include "models/checkpoint/checkpoint.h"
#include "models/decoder/attention_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::sweep {
namespace measured_model_test {

using ::testing::ElementsAre;

TEST(MeasuredModel, EveryFactIsThatOfTheLayout) {
  hooks::AttentionLayout layout;
  layout.heads = 6;
  layout.kv_heads = 3;
  layout.head_dim = 16;
  layout.max_positions = 2048;
  layout.window = {0, 512, 0};
  layout.gated = true;
  layout.filtered = true;
  const runfile::MeasuredModel model = measured_model("made", layout, {1, 2});
  EXPECT_EQ(model.family, "made");
  EXPECT_THAT(model.layers, ElementsAre(1, 2));
  EXPECT_EQ(model.heads, 6);
  EXPECT_EQ(model.kv_heads, 3);
  EXPECT_EQ(model.head_dim, 16);
  EXPECT_EQ(model.max_positions, 2048);
  EXPECT_THAT(model.attention, ElementsAre("window:512", "global")) << "of the measured layers";
  EXPECT_TRUE(model.gated);
  EXPECT_FALSE(model.sink_logits);
  EXPECT_TRUE(model.filtered);
}

TEST(MeasuredModel, SinkLogitsOfACheckpointAreKnownBeforeItsWeights) {
  const auto config = models::read_decoder_config(GAINLENS_SOURCE_DIR "/tests/golden/models/gpt-oss");
  const runfile::MeasuredModel model = measured_model(config.family, models::attention_layout(config), {0, 1, 2});
  EXPECT_TRUE(model.sink_logits);
  EXPECT_THAT(model.attention, ElementsAre("window:13", "global", "window:13"));
}

TEST(MeasuredModel, KvHeadsAndSinksOfLayersAreThoseOfTheMeasuredOnes) {
  hooks::AttentionLayout layout;
  layout.heads = layout.kv_heads = 4;
  layout.window = {0, 8, 8};
  layout.layer_kv_heads = {2, 4, 4};
  layout.sink_logits = true;
  layout.sink_layers = {false, true, true};
  const runfile::MeasuredModel all = measured_model("made", layout, {0, 1, 2});
  EXPECT_EQ(all.kv_heads, 4);
  EXPECT_THAT(all.layer_kv_heads, ElementsAre(2, 4, 4));
  EXPECT_TRUE(all.sink_logits);
  const runfile::MeasuredModel alike = measured_model("made", layout, {1, 2});
  EXPECT_EQ(alike.kv_heads, 4);
  EXPECT_TRUE(alike.layer_kv_heads.empty());
  const runfile::MeasuredModel first = measured_model("made", layout, {0});
  EXPECT_EQ(first.kv_heads, 4) << "one number for every run of the model";
  EXPECT_THAT(first.layer_kv_heads, ElementsAre(2));
  EXPECT_FALSE(first.sink_logits);
}

TEST(MeasuredModel, LayersWithoutAttentionAreNotMeasured) {
  for (const auto kinds : {&hooks::AttentionLayout::delta, &hooks::AttentionLayout::convolution}) {
    hooks::AttentionLayout layout;
    layout.window = {0, 0};
    (layout.*kinds) = {true, false};
    EXPECT_THAT(measured_model("made", layout, {1}).attention, ElementsAre("global"));
    EXPECT_THROW(measured_model("made", layout, {0, 1}), InternalError);
  }
}

}  // namespace measured_model_test
}  // namespace gainlens::sweep
