// Checkpoints of decoders with a Bayesian filter: their configuration, what is refused, saving and initial weights.
#include "core/error.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/initial_weights.h"
#include "models/checkpoint/model_size.h"
#include "models/checkpoint/save_checkpoint.h"
#include "models/decoder/filter_config.h"
#include "models/random_decoder.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace gainlens::models {
namespace decoder_filter_checkpoint_test {

using gainlens::testing::filter_for_tests;
using gainlens::testing::logits;
using gainlens::testing::RandomWeights;
using gainlens::testing::small_config;
using gainlens::testing::some_tokens;
using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

OrderedJson document(const bft::FilterOptions& filter) {
  OrderedJson config = {
      {"model_type", "qwen3"},         {"num_hidden_layers", 2},      {"hidden_size", 16}, {"intermediate_size", 24},
      {"num_attention_heads", 4},      {"num_key_value_heads", 2},    {"head_dim", 4},     {"vocab_size", 50},
      {"max_position_embeddings", 64}, {"tie_word_embeddings", false}};
  config[filter_key] = knobs_to_json(bft::filter_knobs(), filter);
  return config;
}

TEST(DecoderFilterCheckpoint, ASavedCheckpointLoadsWithTheSameBits) {
  for (const bool content : {true, false}) {
    bft::FilterOptions filter = default_decoder_filter();
    filter.jacobian_rank = 3;
    if (!content) filter.initial_precision = bft::InitialPrecision::table;
    const TemporaryFolder folder;
    const OrderedJson config = document(filter);
    const DecoderConfig parsed = parse_decoder_config(Json(config), "test");
    ASSERT_EQ(parsed.filter, filter);
    const DecoderWeights weights = RandomWeights(1, at::kFloat).of(parsed);
    save_checkpoint(folder.path(), config, weights, at::kFloat);
    Checkpoint loaded = load_checkpoint(folder.path());
    EXPECT_EQ(loaded.config.filter, filter);
    Decoder before(parsed, weights), after(loaded.config, loaded.weights);
    const hooks::Tokens tokens = some_tokens(parsed, 2, 20);
    EXPECT_TRUE(at::equal(logits(before, tokens), logits(after, tokens)));
  }
}

TEST(DecoderFilterCheckpoint, ItsOptionsAreChecked) {
  const auto refusal_of = [](const std::function<void(OrderedJson&)>& change, const char* message) {
    OrderedJson config = document(default_decoder_filter());
    change(config);
    EXPECT_THAT([&] { parse_decoder_config(Json(config), "config.json"); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("config.json"), HasSubstr(message))));
  };
  const auto with = [](const char* key, const Json& value) {
    return [key, value](OrderedJson& config) { config[filter_key][key] = value; };
  };
  refusal_of([](OrderedJson& config) { config[filter_key] = 3; }, "must be an object");
  refusal_of(with("new_option", 1), "made by a newer version of gainlens; unknown keys: new_option");
  refusal_of(with("kriging", "per_dimension"), "'kriging' is per_dimension");
  refusal_of(with("initial_precision", "count"), "need counts of items");
  refusal_of(with("initial_precision", "em"), "need counts of items");
  for (const char* estimator : {"sandwich", "kish", "delta"})
    refusal_of(with("estimator", estimator), "which needs all weights of attention at once");
  refusal_of(
      [](OrderedJson& config) {
        config[filter_key]["norm_jacobian"] = true;
        config[filter_key]["jacobian"] = "exact";
      },
      "'norm_jacobian' is true");
  refusal_of(with("output_projection", false), "'output_projection' is false");
}

TEST(DecoderFilterCheckpoint, AnOptionThatIsNotNamedIsWhatHeldBeforeIt) {
  OrderedJson config = document(default_decoder_filter());
  config[filter_key] = {{"jacobian_rank", 3}};
  bft::FilterOptions filter = default_decoder_filter();
  filter.jacobian_rank = 3;
  EXPECT_EQ(parse_decoder_config(Json(config), "config.json").filter, filter);
}

TEST(DecoderFilterCheckpoint, RefusesDecodersThatItDoesNotKnow) {
  const auto refusal_of = [](const std::function<void(DecoderConfig&)>& change, const char* message) {
    DecoderConfig config = small_config();
    config.filter = filter_for_tests();
    change(config);
    EXPECT_THAT([&] { check_filter(config, "here"); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("here: "), HasSubstr(message))));
  };
  DecoderConfig known = small_config();
  known.filter = filter_for_tests();
  EXPECT_NO_THROW(check_filter(known, "here"));
  refusal_of([](DecoderConfig& c) { c.post_norm = true; }, "give 'gain_place' after");
  refusal_of([](DecoderConfig& c) { c.parallel_residual = true; }, "read the same stream");
  refusal_of([](DecoderConfig& c) { c.sink_logits = true; }, "sink logits");
  refusal_of([](DecoderConfig& c) { c.experts.count = 4; }, "mixture of experts");
  refusal_of([](DecoderConfig& c) { c.clipped_gate = ClippedGate{}; }, "clips its gate");
}

TEST(DecoderFilterCheckpoint, TheOtherWeightsStartAsWithoutIt) {
  OrderedJson config = document(default_decoder_filter());
  const DecoderConfig with = parse_decoder_config(Json(config), "test");
  config.erase(filter_key);
  const DecoderConfig without = parse_decoder_config(Json(config), "test");
  DecoderWeights filtered = initial_weights(with, 3), plain = initial_weights(without, 3);
  const auto left = decoder_parameters(with, filtered), right = decoder_parameters(without, plain);
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i].name, right[i].name);
    EXPECT_TRUE(at::equal(left[i].tensor, right[i].tensor)) << left[i].name;
  }
  EXPECT_TRUE(decoder_parameters(without, plain, WeightRole::precision).empty());
  std::int64_t added = 0;
  for (const NamedTensor& parameter : decoder_parameters(with, filtered, WeightRole::precision)) {
    EXPECT_TRUE(parameter.tensor.requires_grad()) << parameter.name;
    added += parameter.tensor.numel();
  }
  EXPECT_EQ(added, 16 * 16 + 16 + 16 + 1 + 1 + 16 + 2);  // network, tau_range, Q of one layer, rho of two
  EXPECT_EQ(parameter_count(with), parameter_count(without) + added);
  EXPECT_FLOAT_EQ(filtered.layers[0].filter.process_noise[0].item<float>(), -9);
  EXPECT_NEAR(filtered.layers[0].filter.recency.sigmoid().item<double>(), 0.99, 1e-6);
  EXPECT_TRUE(at::equal(filtered.precision.network.output, at::zeros({1, 16})));
  for (const NamedTensor& constant : decoder_parameters(with, filtered, WeightRole::constant))
    EXPECT_FALSE(constant.tensor.requires_grad()) << constant.name;
}

}  // namespace decoder_filter_checkpoint_test
}  // namespace gainlens::models
