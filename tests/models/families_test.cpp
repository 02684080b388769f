#include "checkpoint_folder.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/model_size.h"
#include "models/families/family.h"
#include "models/printed_gate.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::models {
namespace families_test {

using models::testing::CheckpointFolder;
using models::testing::message_of;
using models::testing::tiny_config;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderConfig read(const std::string& family, const Json& changes = Json::object()) {
  Json config = tiny_config(family);
  config.update(changes);
  const CheckpointFolder folder(config);
  return read_decoder_config(folder.write());
}

/// tiny_config() without the keys for which a family may have a default.
DecoderConfig read_bare(const std::string& family, const Json& changes) {
  Json config = tiny_config(family);
  for (const char* key : {"num_key_value_heads", "head_dim", "bos_token_id"}) config.erase(key);
  config.update(changes);
  const CheckpointFolder folder(config);
  return read_decoder_config(folder.write());
}

TEST(Families, TableNamesEachOnce) {
  std::vector<std::string_view> names;
  for (const Family& family : families()) names.push_back(family.name);
  const std::vector<std::string_view> expected = {"afmoe",
                                                  "bloom",
                                                  "cohere2",
                                                  "deepseek_v2",
                                                  "deepseek_v3",
                                                  "ernie4_5",
                                                  "exaone4",
                                                  "falcon",
                                                  "gemma",
                                                  "gemma2",
                                                  "gemma3_text",
                                                  "gemma3",
                                                  "glm4",
                                                  "gpt2",
                                                  "gpt_neo",
                                                  "gpt_neox",
                                                  "gpt_oss",
                                                  "gptj",
                                                  "granite",
                                                  "granite_swa",
                                                  "granitemoe_swa",
                                                  "hunyuan_v1_dense",
                                                  "lfm2",
                                                  "lfm3",
                                                  "llama",
                                                  "mimo_v2_flash",
                                                  "mistral",
                                                  "mixtral",
                                                  "mpt",
                                                  "olmo2",
                                                  "olmo3",
                                                  "opt",
                                                  "phi",
                                                  "phi3",
                                                  "qwen2",
                                                  "qwen2_moe",
                                                  "qwen3",
                                                  "qwen3_5_text",
                                                  "qwen3_5_moe_text",
                                                  "qwen3_5_moe",
                                                  "qwen3_5",
                                                  "qwen3_moe",
                                                  "qwen3_next",
                                                  "seed_oss",
                                                  "smollm3",
                                                  "stablelm",
                                                  "starcoder2"};
  EXPECT_EQ(names, expected);
  for (const Family& family : families()) EXPECT_FALSE(family.title.empty() || family.examples.empty()) << family.name;
  EXPECT_EQ(family_named("qwen2", "here").name, "qwen2");
  EXPECT_EQ(message_of([] { family_named("qwen4", "here"); }),
            fmt::format("here: model_type 'qwen4' is not supported; supported are {}; did you mean 'qwen2'?",
                        fmt::join(expected, ", ")));
}

TEST(Families, KnownOnesThatAreLeftOutSayWhy) {
  EXPECT_EQ(message_of([] { family_named("lfm2_moe", "here"); }),
            "here: model_type 'lfm2_moe' is not supported: its experts beside short convolutions are not read");
  for (const char* name : {"step3p5", "step3p7"}) {
    EXPECT_EQ(message_of([&] { family_named(name, "here"); }),
              fmt::format("here: model_type '{}' is not supported: layers with a window have another number of query "
                          "heads than the others, and a run stores one number",
                          name));
  }
}

TEST(Families, GraniteWithSinksAndWindows) {
  const auto of = [](const Json& changes) {
    Json config = {{"num_hidden_layers", 6}};
    config.update(changes);
    return read("granite_swa", config);
  };
  const auto message = [&](const Json& changes) { return message_of([&] { of(changes); }); };
  const DecoderConfig plain = of(Json::object());
  EXPECT_TRUE(plain.sink_logits && plain.tied_head);
  EXPECT_THAT(plain.window, ElementsAre(0, 128, 128, 128, 0, 128));
  EXPECT_THAT(plain.unrotated, ElementsAre(false, false, false, false, false, false));
  EXPECT_FALSE(plain.window_rope.has_value());
  EXPECT_EQ(plain.rope.base, 10000);

  const DecoderConfig bases = of({{"layer_rope_theta", {500, 100, 0, 100, 0, 100}}, {"sliding_window", 8}});
  EXPECT_THAT(bases.window, ElementsAre(0, 8, 8, 8, 0, 8));
  EXPECT_THAT(bases.unrotated, ElementsAre(false, false, true, false, true, false));
  EXPECT_EQ(bases.rope.base, 500);
  EXPECT_EQ(bases.window_rope.value().base, 100);
  // Only layers with a window rotate.
  const DecoderConfig local = of({{"layer_rope_theta", {0, 100, 100, 100, 0, 100}}});
  EXPECT_EQ(local.rope.base, 100);
  EXPECT_FALSE(local.window_rope.has_value());

  EXPECT_THAT(message({{"layer_rope_theta", {500, 100, 200, 100, 500, 100}}}),
              HasSubstr("holds 100 and 200 for layers with a window; one base for these layers is computed"));
  EXPECT_THAT(message({{"layer_rope_theta", {500, 100, 100, 100, 600, 100}}}),
              HasSubstr("holds 500 and 600 for layers without a window"));
  EXPECT_THAT(message({{"layer_rope_theta", {500, 100}}}), HasSubstr("must be a list of 6 numbers, one per layer"));
  EXPECT_THAT(message({{"layer_rope_theta", {500, 100, 100, "x", 500, 100}}}), HasSubstr("holds \"x\""));
  EXPECT_THAT(message({{"layer_rope_theta", {500, 100, 100, -1, 500, 100}}}), HasSubstr("holds -1"));
  EXPECT_THAT(message({{"sliding_window", nullptr}, {"layer_types", Json::array_t(6, "sliding_attention")}}),
              HasSubstr("sliding_window is null; set it"));

  const DecoderConfig experts = read("granitemoe_swa", {{"shared_intermediate_size", 7}, {"num_local_experts", 4}});
  EXPECT_EQ(experts.experts.width, 3);
  EXPECT_EQ(experts.experts.shared_width, 7);
  EXPECT_EQ(experts.experts.per_token, 2);
  EXPECT_FALSE(experts.tied_head);
}

TEST(Families, Lfm2KindsOfLayersAndItsDerivedWidth) {
  const auto of = [](const Json& changes) {
    Json config = {{"num_hidden_layers", 4}, {"norm_eps", 1e-5}};
    config.update(changes);
    return read("lfm2", config);
  };
  const auto message = [&](const Json& changes) { return message_of([&] { of(changes); }); };
  const DecoderConfig listed = of({{"full_attn_idxs", {1, 3}}, {"conv_L_cache", 5}, {"conv_bias", true}});
  EXPECT_THAT(listed.convolution.layers, ElementsAre(true, false, true, false));
  EXPECT_EQ(listed.convolution.kernel, 5);
  EXPECT_TRUE(listed.convolution.bias);
  EXPECT_EQ(listed.attention_layers(4), 2);
  EXPECT_EQ(listed.qk_norm, QkNorm::head);
  EXPECT_FALSE(listed.post_norm);
  EXPECT_EQ(listed.rope.base, tiny_config("lfm2").value("rope_theta", 1e6));
  // layer_types comes first; without both every layer attends
  EXPECT_THAT(
      of({{"full_attn_idxs", {1}}, {"layer_types", {"conv", "conv", "full_attention", "conv"}}}).convolution.layers,
      ElementsAre(true, true, false, true));
  EXPECT_TRUE(of(Json::object()).convolution.layers.empty());

  // as LFM2 1.2B: two thirds of 12288, up to a multiple of 256
  EXPECT_EQ(of({{"block_ff_dim", 12288}}).mlp_width, 8192);
  EXPECT_EQ(of({{"block_ff_dim", 6656}, {"intermediate_size", 4096}}).mlp_width, 4608);
  EXPECT_EQ(of({{"intermediate_size", 60}, {"block_ffn_dim_multiplier", 1.3}, {"block_multiple_of", 16}}).mlp_width,
            64);
  EXPECT_EQ(of({{"intermediate_size", 60}, {"block_ffn_dim_multiplier", nullptr}}).mlp_width, 40);
  EXPECT_EQ(of({{"intermediate_size", 60}, {"block_auto_adjust_ff_dim", false}}).mlp_width, 60);
  EXPECT_TRUE(of({{"tie_word_embeddings", false}, {"tie_embedding", true}}).tied_head);

  EXPECT_THAT(message({{"full_attn_idxs", {4}}}), HasSubstr("'full_attn_idxs' holds 4; each must be a layer, 0 to 3"));
  EXPECT_THAT(message({{"full_attn_idxs", 4}}), HasSubstr("must be a list of layers"));
  EXPECT_THAT(message({{"layer_types", {"conv", "sliding_attention", "conv", "conv"}}}),
              HasSubstr("at layer 1; must be \"conv\" or \"full_attention\""));
  EXPECT_THAT(message({{"layer_types", {"conv"}}}), HasSubstr("must be a list of 4 names, one per layer"));
  EXPECT_THAT(message({{"conv_L_cache", 0}}), HasSubstr("conv_L_cache"));
  EXPECT_THAT(message({{"theta", 5.0}}), HasSubstr("the base of the rotary embedding, as 'rope_theta'"));
}

TEST(Families, Lfm3KindsOfLayersGatesAndRotations) {
  const auto of = [](const Json& changes) {
    Json config = {{"num_hidden_layers", 6}, {"norm_eps", 1e-5}, {"rope_theta", nullptr}};
    config.update(changes);
    return read("lfm3", config);
  };
  const auto message = [&](const Json& changes) { return message_of([&] { of(changes); }); };
  const DecoderConfig plain = of(Json::object());
  EXPECT_THAT(plain.convolution.layers, ElementsAre(true, true, false, true, false, true));
  EXPECT_EQ(plain.convolution.kernel, 7);
  EXPECT_THAT(plain.window, ElementsAre(0, 0, 0, 0, 256, 0));
  EXPECT_EQ(plain.gate, Gate::headwise);
  EXPECT_TRUE(plain.post_norm);
  EXPECT_EQ(plain.rope, (RopeConfig{.base = 1e6, .rotated = 0.5, .scaling = RopeScaling::proportional}));
  EXPECT_EQ(plain.window_rope.value(), RopeConfig{});
  const DecoderConfig changed = of({{"use_attention_gate", false}, {"use_sandwich_norm", false}});
  EXPECT_EQ(changed.gate, Gate::none);
  EXPECT_FALSE(changed.post_norm);
  const Json ropes = {
      {"full_attention", {{"rope_type", "proportional"}, {"rope_theta", 50}, {"partial_rotary_factor", 0.25}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 20}}}};
  const DecoderConfig stated = of({{"rope_parameters", ropes}});
  EXPECT_EQ(stated.rope, (RopeConfig{.base = 50, .rotated = 0.25, .scaling = RopeScaling::proportional}));
  EXPECT_EQ(stated.window_rope.value().base, 20);

  Json ignored = ropes;
  ignored["sliding_attention"]["partial_rotary_factor"] = 0.5;
  EXPECT_THAT(message({{"rope_parameters", ignored}}), HasSubstr("the reference rotates whole heads there"));
  EXPECT_THAT(message({{"rope_theta", 5.0}}), HasSubstr("with one object for each kind of layer"));
  EXPECT_THAT(message({{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 20}}}}),
              HasSubstr("one object for each kind of layer"));
  EXPECT_THAT(message({{"layer_types", {"conv", "conv", "conv", "conv", "conv", "linear"}}}),
              HasSubstr("must be \"conv\", \"sliding_attention\" or \"full_attention\""));
  EXPECT_THAT(message({{"sliding_window", nullptr}}), HasSubstr("sliding_window is null; set it"));
  EXPECT_THAT(message({{"attention_bias", true}}), HasSubstr("have no biases"));
}

TEST(Families, MimoKindsOfLayersAndValues) {
  const auto of = [](const Json& changes) {
    Json config = {{"num_hidden_layers", 7}, {"num_attention_heads", 8}, {"num_key_value_heads", 2}, {"head_dim", 24}};
    config.update(changes);
    return read("mimo_v2_flash", config);
  };
  const auto message = [&](const Json& changes) { return message_of([&] { of(changes); }); };
  const DecoderConfig plain = of(Json::object());
  EXPECT_THAT(plain.window, ElementsAre(0, 129, 129, 129, 129, 0, 129));
  EXPECT_EQ(plain.kv_heads, 4);
  EXPECT_THAT(plain.layer_kv_heads, ElementsAre(2, 4, 4, 4, 4, 2, 4));
  EXPECT_EQ(plain.kv_heads_of(0), 2);
  EXPECT_TRUE(plain.has_sink_logits(1));
  EXPECT_FALSE(plain.has_sink_logits(5));
  EXPECT_EQ(plain.value_dim(), 128);
  EXPECT_EQ(plain.value_scale, 0.707);
  EXPECT_EQ(plain.norm_epsilon, 1e-5);
  EXPECT_FALSE(plain.qkv_bias || plain.output_bias);
  EXPECT_EQ(plain.rope, (RopeConfig{.base = 5e6, .rotated = 0.334}));
  EXPECT_EQ(plain.window_rope.value(), (RopeConfig{.base = 1e4, .rotated = 0.334}));
  EXPECT_THAT(plain.experts.layers, ElementsAre(false, true, true, true, true, true, true));
  EXPECT_EQ(plain.experts.count, 256);
  EXPECT_EQ(plain.experts.scale, 1);
  EXPECT_EQ(plain.experts.scores, RouterScores::sigmoid);
  EXPECT_EQ(plain.experts.shared_width, 0);

  // The size counts the keys before the query, and comes first.
  EXPECT_EQ(of({{"sliding_window", 128}, {"sliding_window_size", 128}}).window[1], 129);
  EXPECT_EQ(of({{"sliding_window", 12}}).window[1], 12);
  EXPECT_EQ(of({{"attention_value_scale", nullptr}}).value_scale, 1);
  const DecoderConfig global = of({{"layer_types", Json::array_t(7, "full_attention")}});
  EXPECT_EQ(global.kv_heads, 2);
  EXPECT_FALSE(global.sink_logits);
  const DecoderConfig dense = of({{"mlp_layer_types", Json::array_t(7, "dense")}, {"attention_bias", true}});
  EXPECT_FALSE(dense.has_experts(6));
  EXPECT_TRUE(dense.qkv_bias);
  const Json ropes = {{"full_attention", {{"rope_theta", 50}, {"partial_rotary_factor", 0.5}}},
                      {"sliding_attention", {{"rope_theta", 20}}}};
  const DecoderConfig stated = of({{"rope_parameters", ropes}});
  EXPECT_EQ(stated.rope, (RopeConfig{.base = 50, .rotated = 0.5}));
  EXPECT_EQ(stated.window_rope.value(), (RopeConfig{.base = 20, .rotated = 0.334}));

  EXPECT_THAT(message({{"num_key_value_heads", 8}}), HasSubstr("twice 'num_key_value_heads', 16 KV heads"));
  EXPECT_THAT(message({{"swa_num_key_value_heads", 2}}), HasSubstr("must be 4: twice 'num_key_value_heads'"));
  EXPECT_THAT(message({{"swa_num_attention_heads", 4}}), HasSubstr("the same number of query heads"));
  EXPECT_THAT(message({{"add_full_attention_sink_bias", true}}), HasSubstr("without a window have no sinks"));
  EXPECT_THAT(message({{"add_swa_attention_sink_bias", false}}), HasSubstr("layers with a window have sinks"));
  EXPECT_THAT(message({{"swa_v_head_dim", 64}}), HasSubstr("values of all layers have the same size"));
  EXPECT_THAT(message({{"rope_theta", 1e7}}), HasSubstr("this is the value without them"));
  EXPECT_THAT(message({{"swa_rope_theta", 5}}), HasSubstr("this is the value without them"));
  EXPECT_THAT(message({{"partial_rotary_factor", 0.5}}), HasSubstr("this is the value without them"));
  EXPECT_THAT(message({{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2}}}}), HasSubstr("'rope_scaling' is"));
  EXPECT_THAT(message({{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 20}}}}),
              HasSubstr("one object for each kind of layer"));
  Json scaled = ropes;
  scaled["full_attention"].update({{"rope_type", "linear"}, {"factor", 2}});
  EXPECT_THAT(message({{"rope_parameters", scaled}}), HasSubstr("no scaling is read in this family"));
  Json odd = ropes;
  odd["sliding_attention"]["partial_rotary_factor"] = 0.05;
  EXPECT_THAT(message({{"rope_parameters", odd}}), HasSubstr("1 of a head's 24 dimensions are rotated"));
  EXPECT_THAT(message({{"sliding_window", nullptr}}), HasSubstr("sliding_window is null; set it"));
  EXPECT_THAT(message({{"mlp_layer_types", {"dense"}}}), HasSubstr("must be a list of 7 names, one per layer"));
  EXPECT_THAT(message({{"mlp_layer_types", Json::array_t(7, "moe")}}), HasSubstr("has \"moe\" at layer 0"));
  EXPECT_THAT(message({{"hybrid_layer_pattern", {0, 1, 0, 1, 0, 1, 0}}}), HasSubstr("computes other layers"));
  EXPECT_EQ(message({{"hybrid_layer_pattern", {0, 1, 1, 1, 1, 0, 1}}}), "");
  EXPECT_THAT(message({{"moe_layer_freq", {1, 1, 1, 1, 1, 1, 1}}}), HasSubstr("computes other layers"));
  EXPECT_THAT(message({{"scoring_func", "softmax"}}), HasSubstr("must be \"sigmoid\""));
  EXPECT_THAT(message({{"n_shared_experts", 1}}), HasSubstr("n_shared_experts"));
  EXPECT_THAT(message({{"n_group", 3}}), HasSubstr("groups must be of one size"));
  EXPECT_THAT(message({{"attention_projection_layout", "fused_qkv"}}), HasSubstr("tensors of their own"));
}

TEST(Families, AfmoeKeysOfEarlierCode) {
  const Json small = {{"num_hidden_layers", 4}, {"num_experts", 8}};
  const auto of = [&](const Json& changes) {
    Json config = small;
    config.update(changes);
    return read("afmoe", config);
  };
  const auto message = [&](const Json& changes) { return message_of([&] { of(changes); }); };
  const DecoderConfig plain = of(Json::object());
  EXPECT_EQ(plain.gate, Gate::elementwise);
  EXPECT_THAT(plain.window, ElementsAre(1024, 1024, 1024, 0));
  EXPECT_THAT(plain.unrotated, ElementsAre(false, false, false, true));
  EXPECT_THAT(of({{"global_attn_every_n_layers", 2}}).window, ElementsAre(1024, 0, 1024, 0));
  EXPECT_THAT(plain.experts.layers, ElementsAre(false, true, true, true));
  EXPECT_EQ(plain.embedding_scale, 1);
  EXPECT_EQ(of({{"mup_enabled", true}}).embedding_scale, 2);
  EXPECT_EQ(of({{"num_shared_experts", 3}, {"moe_intermediate_size", 5}}).experts.shared_width, 15);
  EXPECT_THAT(message({{"score_func", "softmax"}}), HasSubstr("must be \"sigmoid\""));
  EXPECT_THAT(message({{"route_norm", false}}), HasSubstr("must be true"));
  EXPECT_THAT(message({{"n_group", 2}}), HasSubstr("the experts are not in groups"));
  EXPECT_THAT(message({{"attention_bias", true}}), HasSubstr("have no biases"));
  EXPECT_THAT(message({{"num_dense_layers", 5}}), HasSubstr("'num_dense_layers' is 5"));
}

TEST(Families, DefaultsOfTheReference) {
  const Json wide = {{"num_attention_heads", 32}, {"hidden_size", 128}};
  const DecoderConfig llama = read_bare("llama", wide);
  EXPECT_EQ(llama.kv_heads, 32);
  EXPECT_EQ(llama.head_dim, 4);
  EXPECT_EQ(llama.max_positions, 2048);
  EXPECT_EQ(llama.bos_token, 1);
  EXPECT_EQ(llama.norm_epsilon, 1e-6);
  EXPECT_FALSE(llama.tied_head || llama.qkv_bias || llama.output_bias || llama.mlp_bias);
  EXPECT_EQ(llama.qk_norm, QkNorm::none);

  const DecoderConfig mistral = read_bare("mistral", wide);
  EXPECT_EQ(mistral.kv_heads, 8);
  EXPECT_EQ(mistral.max_positions, 131072);
  EXPECT_EQ(mistral.bos_token, 1);
  EXPECT_THAT(mistral.window, ElementsAre(4096));

  const DecoderConfig qwen2 = read_bare("qwen2", wide);
  EXPECT_EQ(qwen2.kv_heads, 32);
  EXPECT_EQ(qwen2.head_dim, 4);
  EXPECT_EQ(qwen2.max_positions, 32768);
  EXPECT_EQ(qwen2.bos_token, std::nullopt);
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.output_bias);
  EXPECT_THAT(qwen2.window, ElementsAre(0));

  const DecoderConfig qwen3 = read_bare("qwen3", wide);
  EXPECT_EQ(qwen3.head_dim, 128);
  EXPECT_EQ(qwen3.qk_norm, QkNorm::head);
  EXPECT_FALSE(qwen3.qkv_bias);
  EXPECT_EQ(qwen3.gate, Gate::none);
}

TEST(Families, LlamaBiases) {
  const DecoderConfig attention = read("llama", {{"attention_bias", true}});
  EXPECT_TRUE(attention.qkv_bias && attention.output_bias);
  EXPECT_FALSE(attention.mlp_bias);
  EXPECT_TRUE(read("llama", {{"mlp_bias", true}}).mlp_bias);
}

TEST(Families, MistralWindow) {
  EXPECT_THAT(read("mistral", {{"sliding_window", 512}, {"num_hidden_layers", 2}}).window, ElementsAre(512, 512));
  EXPECT_THAT(read("mistral", {{"sliding_window", nullptr}}).window, ElementsAre(0));
}

TEST(Families, QwenWindows) {
  const Json windowed = {
      {"num_hidden_layers", 4}, {"use_sliding_window", true}, {"sliding_window", 64}, {"max_window_layers", 3}};
  for (const char* family : {"qwen2", "qwen3"}) {
    EXPECT_THAT(read(family, windowed).window, ElementsAre(0, 0, 0, 64));
    Json typed = windowed;
    typed["layer_types"] = {"sliding_attention", "full_attention", "sliding_attention", "full_attention"};
    EXPECT_THAT(read(family, typed).window, ElementsAre(64, 0, 64, 0));
    Json unused = windowed;
    unused["use_sliding_window"] = false;
    EXPECT_THAT(read(family, unused).window, ElementsAre(0, 0, 0, 0));
    Json none = windowed;
    none["sliding_window"] = nullptr;
    EXPECT_THAT(read(family, none).window, ElementsAre(0, 0, 0, 0));
  }
}

TEST(Families, GptNeoKindsOfLayers) {
  const auto windows = [](const Json& changes) {
    Json config = {{"model_type", "gpt_neo"}, {"num_layers", 4},  {"num_heads", 2},         {"hidden_size", 4},
                   {"vocab_size", 5},         {"window_size", 8}, {"intermediate_size", 3}, {"bos_token_id", 1}};
    config.update(changes);
    const CheckpointFolder folder(config);
    return read_decoder_config(folder.write()).window;
  };
  const auto message = [&](const char* changes) { return message_of([&] { windows(Json::parse(changes)); }); };
  EXPECT_THAT(windows(Json::parse(R"({"attention_types": [[["global", "local"], 2]]})")), ElementsAre(0, 8, 0, 8));
  EXPECT_THAT(windows(Json::parse(R"({"attention_types": [[["local"], 1], [["global"], 3]]})")),
              ElementsAre(8, 0, 0, 0));
  EXPECT_THAT(windows(Json::parse(R"({"attention_layers": ["local", "local", "global", "global"]})")),
              ElementsAre(8, 8, 0, 0));
  for (const char* bad : {R"({"attention_types": "global"})", R"({"attention_types": [[["global", "local"], 12]]})",
                          R"({"attention_types": [["global", 4]]})", R"({"attention_types": [[["global"], -1]]})",
                          R"({"attention_types": [[["global"], 2.5]]})", R"({"attention_types": [[[], 4]]})",
                          R"({"attention_types": [[["global"], 1e18]]})"})
    EXPECT_THAT(message(bad), HasSubstr("must be a list of [[names], count], for 4 layers in all")) << bad;
  EXPECT_THAT(message(R"({"attention_types": [[["global"], 3]]})"), HasSubstr("one for each of 4 layers"));
  EXPECT_THAT(message(R"({"attention_types": [[["globl"], 4]]})"), HasSubstr("must be global or local"));
  EXPECT_THAT(message(R"({"attention_types": [[["global"], 4]], "attention_layers": ["local"]})"),
              HasSubstr("they mean the same and must agree"));
  EXPECT_THAT(message(R"({"attention_layers": ["global", "global", "global", "global"], "rotary": true})"),
              HasSubstr("'rotary' is true; must be false"));
}

TEST(Families, SmolLM3LayersThatDoNotRotate) {
  const auto unrotated = [](Json changes) {
    changes["num_hidden_layers"] = 4;
    return read("smollm3", changes).unrotated;
  };
  const auto message = [&](const Json& changes) { return message_of([&] { unrotated(changes); }); };
  EXPECT_THAT(unrotated(Json::object()), ElementsAre(false, false, false, true));
  EXPECT_THAT(unrotated({{"no_rope_layer_interval", 2}}), ElementsAre(false, true, false, true));
  EXPECT_THAT(unrotated({{"no_rope_layers", {0, 1, 1, 0}}}), ElementsAre(true, false, false, true));
  EXPECT_THAT(message({{"no_rope_layers", {0, 1, 1}}}), HasSubstr("must be a list of 4 numbers, one per layer"));
  EXPECT_THAT(message({{"no_rope_layers", 4}}), HasSubstr("must be a list of 4 numbers"));
  EXPECT_THAT(message({{"no_rope_layers", {0, 1, 2, 1}}}), HasSubstr("holds 2; each must be 1 (rotated) or 0"));
  EXPECT_THAT(message({{"no_rope_layers", {0, 1, "x", 1}}}), HasSubstr("holds \"x\""));
  EXPECT_THAT(message({{"no_rope_layer_interval", 0}}), HasSubstr("'no_rope_layer_interval' is 0"));
}

TEST(Families, Exaone4WindowsByAWord) {
  const auto windows = [](Json changes) {
    changes["num_hidden_layers"] = 4;
    return read("exaone4", changes).window;
  };
  const Json types = {"sliding_attention", "sliding_attention", "sliding_attention", "full_attention"};
  const Json all_sliding(4, "sliding_attention");
  EXPECT_THAT(windows({{"sliding_window", 8}, {"sliding_window_pattern", "LG"}}), ElementsAre(8, 0, 8, 0));
  EXPECT_THAT(windows({{"sliding_window", 8}, {"sliding_window_pattern", 4}}), ElementsAre(8, 8, 8, 0));
  EXPECT_THAT(windows({{"sliding_window", nullptr}, {"sliding_window_pattern", "LLLG"}}), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(windows({{"sliding_window", 8}, {"sliding_window_pattern", "LLLG"}, {"layer_types", types}}),
              ElementsAre(8, 8, 8, 0));
  // layer_types decide what the letter of the last layer means.
  EXPECT_THAT(windows({{"sliding_window", 8}, {"sliding_window_pattern", "L"}, {"layer_types", all_sliding}}),
              ElementsAre(8, 8, 8, 8));

  const auto message = [&](const Json& changes) { return message_of([&] { windows(changes); }); };
  EXPECT_THAT(message({{"sliding_window", 8}, {"sliding_window_pattern", "L"}}), HasSubstr("give 'layer_types'"));
  EXPECT_THAT(message({{"sliding_window_pattern", "LLXG"}}), HasSubstr("a word of the letters L and G"));
  EXPECT_THAT(message({{"sliding_window_pattern", ""}}), HasSubstr("a word of the letters L and G"));
  EXPECT_THAT(message({{"sliding_window", 8}, {"sliding_window_pattern", "GGGG"}, {"layer_types", types}}),
              HasSubstr("they mean the same and must agree"));
  EXPECT_THAT(message({{"reorder_qk_norm", false}}), HasSubstr("'reorder_qk_norm' is false; must be true"));
}

TEST(Families, Qwen3Gates) {
  EXPECT_EQ(read("qwen3", {{"headwise_attn_output_gate", true}}).gate, Gate::headwise);
  EXPECT_EQ(read("qwen3", {{"elementwise_attn_output_gate", true}}).gate, Gate::elementwise);
  EXPECT_EQ(read("qwen3", {{"headwise_attn_output_gate", true}, {"elementwise_attn_output_gate", true}}).gate,
            Gate::headwise);
  EXPECT_EQ(read("qwen3", {{"use_qk_norm", false}}).qk_norm, QkNorm::none);
  const DecoderConfig biased = read("qwen3", {{"qkv_bias", true}, {"attention_bias", false}});
  EXPECT_TRUE(biased.qkv_bias && biased.output_bias);
  EXPECT_TRUE(read("qwen3", {{"attention_bias", true}}).output_bias);
}

/// A configuration of four layers with small heads of linear attention.
Json with_linear_layers() {
  return {{"num_hidden_layers", 4},    {"head_dim", 8},
          {"linear_num_key_heads", 2}, {"linear_num_value_heads", 4},
          {"linear_key_head_dim", 3},  {"linear_value_head_dim", 5}};
}

TEST(Families, Qwen3NextDefaultsOfTheReference) {
  Json changes = {{"num_hidden_layers", 8}, {"num_attention_heads", 16}, {"hidden_size", 2048}};
  const DecoderConfig config = read_bare("qwen3_next", changes);
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.head_dim, 256);
  EXPECT_EQ(config.rope.rotated, 0.25);
  EXPECT_EQ(config.norm_offset, 1);
  EXPECT_EQ(config.gate, Gate::elementwise);
  EXPECT_EQ(config.qk_norm, QkNorm::head);
  EXPECT_THAT(config.delta.layers, ElementsAre(true, true, true, false, true, true, true, false));
  EXPECT_EQ(config.attention_layers(8), 2);
  EXPECT_EQ(config.attention_layers(7), 1);
  EXPECT_EQ(config.delta.key_heads, 16);
  EXPECT_EQ(config.delta.value_heads, 32);
  EXPECT_EQ(config.delta.key_dim, 128);
  EXPECT_EQ(config.delta.value_dim, 128);
  EXPECT_EQ(config.delta.kernel, 4);
  EXPECT_EQ(config.experts.count, 512);
  EXPECT_EQ(config.experts.per_token, 10);
  EXPECT_EQ(config.experts.width, 512);
  EXPECT_TRUE(config.experts.normalised && config.experts.shared_score);
  EXPECT_EQ(config.experts.shared_width, 512);
  EXPECT_TRUE(config.has_experts(0));
  changes["num_experts"] = 0;
  EXPECT_FALSE(read_bare("qwen3_next", changes).has_experts(0));
  changes["full_attention_interval"] = 1;
  EXPECT_EQ(read_bare("qwen3_next", changes).attention_layers(8), 8);
}

TEST(Families, Qwen35ReadsItsTextModel) {
  Json changes = with_linear_layers();
  changes["layer_types"] = {"full_attention", "linear_attention", "full_attention", "linear_attention"};
  changes["rope_parameters"] = {{"rope_theta", 100},
                                {"rope_type", "default"},
                                {"mrope_section", {1, 1, 0}},
                                {"mrope_interleaved", true},
                                {"partial_rotary_factor", 0.5}};
  changes["rope_theta"] = nullptr;
  const DecoderConfig text = read("qwen3_5_text", changes);
  EXPECT_THAT(text.delta.layers, ElementsAre(false, true, false, true));
  EXPECT_EQ(text.rope.base, 100);
  EXPECT_EQ(text.rope.rotated, 0.5);
  EXPECT_EQ(text.experts.count, 0);
  Json moe = changes;
  moe.update({{"num_experts", 4},
              {"num_experts_per_tok", 2},
              {"moe_intermediate_size", 6},
              {"shared_expert_intermediate_size", 7},
              {"intermediate_size", nullptr}});
  const DecoderConfig experts = read("qwen3_5_moe_text", moe);
  EXPECT_EQ(experts.experts.width, 6);
  EXPECT_EQ(experts.experts.shared_width, 7);

  Json inner = tiny_config("qwen3_5_text");
  inner.update(changes);
  inner.erase("architectures");
  const CheckpointFolder folder({{"model_type", "qwen3_5"}, {"text_config", inner}, {"vision_config", {{"depth", 2}}}});
  const DecoderConfig multimodal = read_decoder_config(folder.write());
  EXPECT_THAT(multimodal.delta.layers, ElementsAre(false, true, false, true));
}

TEST(Families, LayersOfLinearAttentionThatCannotBe) {
  const auto refused = [](const char* family, Json changes, const char* message) {
    Json all = with_linear_layers();
    all.update(changes);
    EXPECT_THAT(message_of([&] { read(family, all); }), HasSubstr(message)) << changes.dump();
  };
  refused("qwen3_next", {{"layer_types", {"linear_attention"}}}, "must be a list of 4 names");
  refused("qwen3_next", {{"layer_types", {"linear_attention", "sliding_attention", "a", "b"}}},
          "'layer_types' has \"sliding_attention\" at layer 1; must be \"linear_attention\" or \"full_attention\"");
  refused("qwen3_next", {{"linear_num_key_heads", 3}},
          "'linear_num_value_heads' is 4 and 'linear_num_key_heads' is 3; the first must be a multiple");
  refused("qwen3_next", {{"linear_conv_kernel_dim", 0}}, "linear_conv_kernel_dim");
  refused("qwen3_5_text", {{"mamba_ssm_dtype", "bfloat16"}}, "computed in float32");
  refused("qwen3_5_text", {{"attn_output_gate", false}}, "queries and gates are one tensor");
  refused("qwen3_5_moe_text", {{"norm_topk_prob", false}}, "sum to 1");
  // The rotation of text positions alone: in other families the sections are unknown keys.
  EXPECT_THAT(message_of([] {
                read("qwen3", {{"rope_parameters", {{"mrope_section", {1, 1}}}}});
              }),
              HasSubstr("mrope_section"));
  EXPECT_THAT(message_of([] { read("llama", {{"layer_types", {"linear_attention"}}}); }), HasSubstr("layer_types"));
}

TEST(Families, DeepSeekDefaultsOfTheReference) {
  const Json changes = {{"num_attention_heads", 128}, {"hidden_size", 7168}, {"num_experts_per_tok", 8}};
  const DecoderConfig third = read_bare("deepseek_v3", changes);
  EXPECT_EQ(third.kv_heads, 128);
  EXPECT_EQ(third.head_dim, 192);
  EXPECT_EQ(third.value_dim(), 128);
  EXPECT_EQ(third.rotary_dim(), 64);
  EXPECT_EQ(third.latent.key_rank, 512);
  EXPECT_EQ(third.latent.query_rank, 1536);
  EXPECT_EQ(third.attention_scale, 1 / std::sqrt(192.0));
  EXPECT_FALSE(third.has_experts(0)) << "the first three layers have none";
  EXPECT_EQ(third.experts.count, 256);
  EXPECT_EQ(third.experts.per_token, 8);
  EXPECT_EQ(third.experts.width, 2048);
  EXPECT_EQ(third.experts.shared_width, 2048);
  EXPECT_EQ(third.experts.groups, 8);
  EXPECT_EQ(third.experts.kept_groups, 4);
  EXPECT_EQ(third.experts.group_leaders, 2);
  EXPECT_EQ(third.experts.scale, 2.5);
  EXPECT_TRUE(third.experts.normalised && third.experts.router_correction && third.experts.router_wide);
  EXPECT_EQ(third.experts.scores, RouterScores::sigmoid);

  Json scaled = changes;
  scaled["rope_scaling"] = {{"type", "yarn"},
                            {"factor", 40},
                            {"mscale", 0.707},
                            {"mscale_all_dim", 0.707},
                            {"original_max_position_embeddings", 4096}};
  scaled["q_lora_rank"] = nullptr;
  const DecoderConfig second = read_bare("deepseek_v2", scaled);
  EXPECT_EQ(second.latent.query_rank, 0);
  EXPECT_TRUE(second.has_experts(0));
  EXPECT_EQ(second.experts.count, 64);
  EXPECT_EQ(second.experts.width, 1407);
  EXPECT_EQ(second.experts.shared_width, 2 * 1407);
  EXPECT_EQ(second.experts.groups, 1);
  EXPECT_FALSE(second.experts.normalised);
  EXPECT_EQ(second.rope.attention_factor, 1);
  const double magnitude = 0.1 * 0.707 * std::log(40.0) + 1;
  EXPECT_DOUBLE_EQ(second.attention_scale, magnitude * magnitude / std::sqrt(192.0));
  scaled.update({{"topk_method", "group_limited_greedy"}, {"n_group", 8}, {"topk_group", 3}});
  const DecoderConfig groups = read_bare("deepseek_v2", scaled);
  EXPECT_EQ(groups.experts.groups, 8);
  EXPECT_EQ(groups.experts.kept_groups, 3);
  EXPECT_EQ(groups.experts.group_leaders, 1);
}

TEST(Families, LatentAttentionThatCannotBe) {
  const auto refused = [](const char* family, Json changes, const char* message) {
    Json all = {{"num_experts_per_tok", 2}, {"num_key_value_heads", 2}, {"head_dim", nullptr}};
    all.update(changes);
    EXPECT_THAT(message_of([&] { read(family, all); }), HasSubstr(message)) << changes.dump();
  };
  refused("deepseek_v2", Json::object(), "");
  refused("deepseek_v2", {{"num_key_value_heads", 1}}, "expands keys and values for every head");
  refused("deepseek_v2", {{"head_dim", 128}}, "another name of 'qk_rope_head_dim'");
  refused("deepseek_v2", {{"qk_head_dim", 128}}, "must be 192");
  refused("deepseek_v2", {{"kv_lora_rank", 0}}, "kv_lora_rank");
  refused("deepseek_v2", {{"qk_rope_head_dim", 63}}, "needs an even one");
  refused("deepseek_v2", {{"norm_topk_prob", true}}, "the Python reference ignores it");
  refused("deepseek_v2", {{"topk_method", "noaux_tc"}}, "must be 'greedy' or 'group_limited_greedy'");
  refused("deepseek_v2", {{"topk_method", "group_limited_greedy"}}, "n_group");
  refused("deepseek_v2", {{"scoring_func", "sigmoid"}}, "must be \"softmax\"");
  refused("deepseek_v2", {{"moe_layer_freq", 2}}, "moe_layer_freq");
  refused("deepseek_v2", {{"mlp_bias", true}}, "mlp_bias");
  refused("deepseek_v3", {{"topk_method", "greedy"}}, "must be \"noaux_tc\"");
  refused("deepseek_v3", {{"rope_interleave", false}}, "pair by pair");
  refused("deepseek_v3", {{"n_group", 7}}, "groups must be of one size, at least 2");
  refused("deepseek_v3", {{"n_group", 256}}, "groups must be of one size, at least 2");
  refused("deepseek_v3", {{"topk_group", 9}}, "topk_group");
  refused("deepseek_v3", {{"n_group", 128}, {"topk_group", 1}, {"num_experts_per_tok", 3}}, "1 groups of 2 experts");
  refused("deepseek_v3", {{"n_routed_experts", 16}, {"num_local_experts", 8}}, "must agree");
  refused("deepseek_v3", {{"num_routed_experts", 256}}, "did you mean 'n_routed_experts'?");
}

TEST(ModelSize, ParametersByHand) {
  // embedding 20, head 20, norms 3 x 4, q 16, k 8, v 8, o 16, MLP 3 x 12
  EXPECT_EQ(parameter_count(read("llama")), 136);
  EXPECT_EQ(parameter_count(read("llama", {{"tie_word_embeddings", true}})), 116);
  EXPECT_EQ(parameter_count(read("qwen2")), 136 + 4 + 2 + 2);  // biases of q, k, v
  EXPECT_EQ(parameter_count(read("qwen3")), 136 + 2 + 2);      // norms of queries and keys
  EXPECT_EQ(parameter_count(read("qwen3", {{"headwise_attn_output_gate", true}})), 140 + 2 * 4);  // one row per head
  EXPECT_EQ(parameter_count(read("qwen3", {{"elementwise_attn_output_gate", true}})),
            140 + 4 * 4);  // one row per head and dimension
}

}  // namespace families_test
}  // namespace gainlens::models
