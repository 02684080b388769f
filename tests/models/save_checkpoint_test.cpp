// A saved checkpoint is loaded with the same bits. Tests every option that has tensors of its own.
#include "models/checkpoint/save_checkpoint.h"

#include "core/error.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/initial_weights.h"
#include "models/checkpoint/read_config.h"
#include "models/decoder/decoder.h"
#include "models/random_decoder.h"
#include "support/shared_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <string>

namespace gainlens::models {
namespace save_checkpoint_test {

using gainlens::testing::TemporaryFolder;

OrderedJson document(bool gated, bool bias, bool tied) {
  OrderedJson config = {
      {"model_type", "qwen3"},         {"num_hidden_layers", 2},     {"hidden_size", 16}, {"intermediate_size", 24},
      {"num_attention_heads", 4},      {"num_key_value_heads", 2},   {"head_dim", 8},     {"vocab_size", 50},
      {"max_position_embeddings", 64}, {"tie_word_embeddings", tied}};
  if (gated) config["headwise_attn_output_gate"] = true;
  if (bias) config["qkv_bias"] = true;
  return config;
}

class SavedCheckpoint : public ::testing::TestWithParam<std::tuple<bool, bool, bool>> {};

TEST_P(SavedCheckpoint, LoadsWithTheSameNumbers) {
  const auto [gated, bias, tied] = GetParam();
  const TemporaryFolder folder;
  const OrderedJson config = document(gated, bias, tied);
  const DecoderConfig parsed = parse_decoder_config(Json(config), "test");
  const DecoderWeights weights = initial_weights(parsed, 3);
  save_checkpoint(folder.path(), config, weights, at::kFloat);
  Checkpoint loaded = load_checkpoint(folder.path());
  Decoder before(parsed, weights), after(loaded.config, loaded.weights);
  const auto tokens = gainlens::testing::some_tokens(parsed, 2, 20);
  // Loaded weights are packed, and on some processors another kernel multiplies them.
  const at::Tensor expected = gainlens::testing::logits(before, tokens),
                   found = gainlens::testing::logits(after, tokens);
  EXPECT_LT(((expected - found).abs().max() / expected.abs().max()).item<double>(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, SavedCheckpoint,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool(), ::testing::Bool()));

TEST(SaveCheckpoint, RefusesWhatTheTypeCannotHold) {
  const TemporaryFolder folder;
  const OrderedJson config = document(false, false, true);
  DecoderWeights weights = initial_weights(parse_decoder_config(Json(config), "test"), 3);
  weights.final_norm = at::full({16}, 1e5f);
  EXPECT_THROW(save_checkpoint(folder.path(), config, weights, at::kHalf), InvalidArgument);
  EXPECT_THROW(save_checkpoint(folder.path(), config, weights, at::kInt), InvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "config.json"));
  EXPECT_NO_THROW(save_checkpoint(folder.path(), config, weights, at::kBFloat16));
}

TEST(InitialWeights, ParametersOfEveryFamilyHaveNamesOfTheirOwn) {
  int trained = 0;
  for (const auto& entry : std::filesystem::directory_iterator(GAINLENS_SOURCE_DIR "/tests/golden/models")) {
    if (!exists(entry.path() / "config.json")) continue;
    const DecoderConfig config = read_decoder_config(entry.path());
    if (!stacked_tensor(config).empty()) continue;
    ++trained;
    DecoderWeights weights = initial_weights(config, 1);
    std::set<std::string> names;
    for (const auto& [name, tensor] : decoder_parameters(config, weights))
      EXPECT_TRUE(names.insert(name).second) << entry.path().filename() << ": " << name;
  }
  EXPECT_GT(trained, 30);
  EXPECT_NE(stacked_tensor(read_decoder_config(GAINLENS_SOURCE_DIR "/tests/golden/models/qwen3-moe")), "");
}

TEST(InitialWeights, HaveTheirVarianceAndTheirSeed) {
  OrderedJson config = document(true, true, true);
  config["hidden_size"] = 256;
  config["intermediate_size"] = 512;
  const DecoderConfig parsed = parse_decoder_config(Json(config), "test");
  DecoderWeights weights = initial_weights(parsed, 3);
  const LayerWeights& layer = weights.layers[0];
  const auto deviation = [](const at::Tensor& tensor) { return tensor.detach().std().item<double>(); };
  EXPECT_NEAR(deviation(weights.embedding), 0.02, 0.001);
  EXPECT_NEAR(deviation(layer.query), 1 / 16.0, 0.003);
  EXPECT_NEAR(deviation(layer.mlp_down), 1 / std::sqrt(512.0) / 2, 0.001);  // sqrt(2 layers) = 2
  EXPECT_TRUE(at::equal(layer.attention_norm, at::ones({256})));
  EXPECT_TRUE(at::equal(layer.gate_score_bias, at::zeros({4})));
  EXPECT_TRUE(weights.head.is_same(weights.embedding));
  EXPECT_TRUE(at::equal(initial_weights(parsed, 3).layers[1].key, weights.layers[1].key));
  EXPECT_FALSE(at::equal(initial_weights(parsed, 4).layers[1].key, weights.layers[1].key));

  std::int64_t counted = 0;
  for (const auto& [name, tensor] : decoder_parameters(parsed, weights)) {
    EXPECT_TRUE(tensor.is_leaf() && tensor.requires_grad()) << name;
    counted += tensor.numel();
  }
  std::int64_t stored = 0;
  for (const auto& [name, tensor] : checkpoint_tensors(parsed, weights)) stored += tensor.numel();
  EXPECT_EQ(counted, stored);
}

}  // namespace save_checkpoint_test
}  // namespace gainlens::models
