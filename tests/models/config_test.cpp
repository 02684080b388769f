#include "checkpoint_folder.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/model_size.h"
#include "models/families/class_names.h"
#include "models/families/config_reader.h"
#include "models/families/inert_keys.h"
#include "models/families/other_keys.h"
#include "models/families/reference_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <sstream>

namespace gainlens::models {
namespace {

using models::testing::CheckpointFolder;
using models::testing::message_of;
using models::testing::tiny_config;
using ::testing::AllOf;
using ::testing::HasSubstr;

DecoderConfig read(const Json& config) {
  const CheckpointFolder folder(config);
  return read_decoder_config(folder.write());
}

/// tiny_config() with some keys replaced or added.
Json tiny_with(const Json& changes, const std::string& model_type = "llama") {
  Json config = tiny_config(model_type);
  config.update(changes);
  return config;
}

Json tiny_without(const std::string& key) {
  Json config = tiny_config();
  config.erase(key);
  return config;
}

struct Mutant {
  const char* family;
  const char* changes;  // JSON object whose keys replace those of tiny_config
  const char* message;  // must be part of the message
};

void expect_refused(const std::vector<Mutant>& mutants) {
  for (const Mutant& mutant : mutants) {
    const Json config = tiny_with(Json::parse(mutant.changes), mutant.family);
    EXPECT_THAT(message_of([&] { read(config); }), AllOf(HasSubstr("config.json: "), HasSubstr(mutant.message)))
        << mutant.family << " " << mutant.changes;
  }
}

TEST(Config, TheUnalteredMutantIsAccepted) {
  for (const char* family : {"llama", "mistral", "qwen2", "qwen3"}) EXPECT_EQ(read(tiny_config(family)).family, family);
}

TEST(Config, WrongTypesAndRanges) {
  expect_refused({
      {"llama", R"({"num_hidden_layers": "2"})", "'num_hidden_layers' is \"2\"; must be an integer from 1 to 4096"},
      {"llama", R"({"num_hidden_layers": 0})", "'num_hidden_layers' is 0"},
      {"llama", R"({"num_hidden_layers": -1})", "'num_hidden_layers' is -1"},
      {"llama", R"({"num_hidden_layers": 4097})", "'num_hidden_layers' is 4097"},
      {"llama", R"({"num_hidden_layers": 2.5})", "'num_hidden_layers' is 2.5"},
      {"llama", R"({"num_hidden_layers": true})", "'num_hidden_layers' is true"},
      {"llama", R"({"num_hidden_layers": null})", "'num_hidden_layers' is null"},
      {"llama", R"({"num_hidden_layers": [2]})", "'num_hidden_layers' is [2]"},
      {"llama", R"({"hidden_size": 4.0})", "'hidden_size' is 4.0; must be an integer"},
      {"llama", R"({"hidden_size": 18446744073709551615})", "'hidden_size' is 18446744073709551615"},
      {"llama", R"({"hidden_size": 1e30})", "'hidden_size' is 1e+30"},
      {"llama", R"({"vocab_size": 2147483649})", "'vocab_size' is 2147483649; must be an integer from 1 to 2147483648"},
      {"llama", R"({"intermediate_size": {}})", "'intermediate_size' is {}"},
      {"llama", R"({"num_attention_heads": 3, "num_key_value_heads": 2})",
       "'num_attention_heads' is 3 and 'num_key_value_heads' is 2"},
      {"llama", R"({"head_dim": null, "hidden_size": 5})",
       "'hidden_size' is 5 and 'num_attention_heads' is 2; the first must be a multiple of the second"},
      {"llama", R"({"head_dim": 3})", "head_dim is 3; the rotary embedding needs an even one"},
      {"llama", R"({"head_dim": -2})", "'head_dim' is -2"},
      {"qwen3", R"({"head_dim": null})", "'head_dim' is null"},
      {"llama", R"({"max_position_embeddings": 0})", "'max_position_embeddings' is 0"},
      {"llama", R"({"rms_norm_eps": 0})", "'rms_norm_eps' is 0; must be a number from"},
      {"llama", R"({"rms_norm_eps": "1e-6"})", "'rms_norm_eps' is \"1e-6\""},
      {"llama", R"({"tie_word_embeddings": 1})", "'tie_word_embeddings' is 1; must be true or false"},
      {"llama", R"({"attention_bias": "no"})", "'attention_bias' is \"no\""},
      {"llama", R"({"bos_token_id": 5})", "'bos_token_id' is 5; must be null or an id below vocab_size (5)"},
      {"llama", R"({"bos_token_id": -1})", "'bos_token_id' is -1"},
      {"llama", R"({"bos_token_id": "<s>"})", "'bos_token_id' is \"<s>\""},
  });
}

TEST(Config, SizesThatAreTooLargeTogether) {
  const Json config = tiny_with(Json::parse(R"({"num_hidden_layers": 4096, "hidden_size": 1048576, )"
                                            R"("num_attention_heads": 16384, "num_key_value_heads": 16384, )"
                                            R"("head_dim": 16384})"));
  EXPECT_THAT(message_of([&] { read(config); }), AllOf(HasSubstr("the sizes describe 461"),
                                                       HasSubstr("parameters; at most 281474976710656 are supported")));
}

TEST(Config, TooManyExpertsTogether) {
  const Json many = {{"num_hidden_layers", 4096}, {"num_experts", 16384}, {"num_experts_per_tok", 1}};
  EXPECT_THAT(message_of([&] { read(tiny_with(many, "qwen3_moe")); }),
              HasSubstr("4096 layers of 16384 experts are 67108864 experts; at most 262144 are supported"));
}

TEST(Config, OtherMathematicsIsRefused) {
  expect_refused({
      {"llama", R"({"logit_scale": 0.5})", "'logit_scale' is 0.5; this family computes only 1.0: the factor on the"},
      {"llama", R"({"attention_chunk_size": 5})",
       "unknown key 'attention_chunk_size' (= 5) may change what the model computes; if it does not, remove it or give "
       "--ignore-config-key attention_chunk_size"},
      {"llama", R"({"rope_thetta": 5e5})", "did you mean 'rope_theta'?"},
      {"llama", R"({"sliding_window": 512})", "unknown key 'sliding_window'"},
      {"qwen2", R"({"headwise_attn_output_gate": true})",
       "'headwise_attn_output_gate' is true; this family computes only false"},
      {"mistral", R"({"mlp_bias": true})", "'mlp_bias' is true; this family computes only false"},
      {"mistral", R"({"attention_bias": true})", "'attention_bias' is true; must be false"},
      {"llama", R"({"hidden_act": "tanh"})", "'hidden_act' is 'tanh'; must be silu"},
      {"llama", R"({"hidden_act": "sillu"})", "did you mean 'silu'?"},
      {"llama", R"({"quantization_config": {"quant_method": "awq"}})",
       "'quantization_config' is {\"quant_method\":\"awq\"}; weights quantised by awq are not read"},
      {"llama", R"({"partial_rotary_factor": 0.5})", "'partial_rotary_factor' is 0.5; only whole heads"},
      {"llama", R"({"is_encoder_decoder": true})", "'is_encoder_decoder' is true; must be false"},
      {"qwen2", R"({"use_mrope": true})", "'use_mrope' is true; must be false"},
      {"qwen3", R"({"attention_bias": true, "qkv_bias": false})", "'attention_bias' is true and 'qkv_bias' is false"},
      {"llamma", "{}", "model_type 'llamma' is not supported; supported are bloom, cohere2, deepseek_v2,"},
      {"codegen", "{}", "model_type 'codegen' is not supported"},
  });
}

// Keys that compute nothing at one value, and something at another.
TEST(Config, KeysThatAreAcceptedByTheirValue) {
  struct Case {
    const char* family;
    const char* accepted;
    const char* refused;
    const char* message;
  };
  const std::vector<Case> cases = {
      {"llama", R"({"lm_head_bias": false})", R"({"lm_head_bias": true})", "a bias of the output head"},
      {"llama", R"({"qkv_bias": false})", R"({"qkv_bias": true})", "biases of queries, keys and values"},
      {"qwen2", R"({"attention_bias": true})", R"({"attention_bias": false})",
       "'attention_bias' is false; must be true"},
      {"qwen3_moe", R"({"use_qk_norm": true, "qkv_bias": false})", R"({"use_qk_norm": false})", "norms of queries"},
      {"qwen3_moe", R"({"shared_expert_intermediate_size": 0})", R"({"shared_expert_intermediate_size": 8})",
       "the width of the expert for all tokens"},
      {"llama", R"({"num_experts": 0})", R"({"num_experts": 4})", "the number of experts"},
      {"phi3", R"({"full_attn_mod": 1, "interpolate_factor": 1.0})", R"({"full_attn_mod": 2})", "the same attention"},
      {"llama", R"({"n_head": 2})", R"({"n_head": 4})", "'n_head' is 4 and 'num_attention_heads' is 2; they mean the"},
      {"llama", R"({"norm_eps": 1e-6})", R"({"norm_eps": 1e-5})", "the epsilon of the norms"},
      {"llama", R"({"rotary_pct": 1})", R"({"rotary_pct": 0.5})", "the share of a head that is rotated"},
      {"llama", R"({"rotary_dim": 2})", R"({"rotary_dim": 4})", "the number of a head's dimensions that are rotated"},
      {"llama", R"({"hidden_activation": "swish"})", R"({"hidden_activation": "gelu"})", "unknown key"},
      {"llama", R"({"use_sliding_window": false, "sliding_window": 64, "max_window_layers": 3})",
       R"({"use_sliding_window": true})", "'use_sliding_window' is true"},
      {"llama", R"({"layer_types": ["full_attention"]})", R"({"layer_types": ["sliding_attention"]})",
       "the kinds of the layers"},
      {"llama", R"({"position_embedding_type": "rope"})", R"({"position_embedding_type": "alibi"})", "unknown key"},
      {"llama", R"({"is_causal": true})", R"({"is_causal": false})", "a query sees no later key"},
      {"llama", R"({"hidden_dropout_prob": 0.1})",
       R"({"hidden_dropoutt": true, "classifier_dropout": 1, "is_causal": false})", "a query sees no later key"},
      {"llama", R"({"n_special": 0})", R"({"n_special": 3})", "such tokens are not computed"},
      {"llama", R"({"seq_length": 99})", R"({"seq_length": 0})", "unknown key 'seq_length'"},
      {"gemma2", R"({"sliding_window_size": 4096})", R"({"sliding_window_size": 64})", "the window"},
      {"llama", R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "attn_factor": 1}})",
       R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "attn_factor": 0.9}})",
       "give --ignore-config-key rope_scaling.attn_factor to compute as the reference, or replace the key by "
       "'attention_factor' in a copy of the file"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(message_of([&] { read(tiny_with(Json::parse(c.accepted), c.family)); }), "") << c.accepted;
    expect_refused({{c.family, c.refused, c.message}});
  }
}

TEST(Config, KeysThatComputeNothing) {
  for (const char* keys :
       {R"({"logit_scale": null, "odd": null, "rope_scaling": {"rope_type": "linear", "factor": 2, "mscale": null}})",
        R"({"pretraining_tp": 2})", R"({"dtype": "float32", "torch_dtype": "bfloat16"})",
        R"({"tokenizer_name": "gpt2", "tokenizer": "fast", "tf_legacy_loss": false})",
        R"({"init_std": 0.02, "use_scaled_init_for_output_weights": true, "init_config": {"name": "kaiming"}})",
        R"({"im_start_token_id": 4, "stop_token_ids": [1, 2], "use_flash_attention_2": true, "softmax_in_fp32": true})",
        R"({"output_past": true, "_num_labels": 1, "predict_special_tokens": true, "attention_bias": null})"}) {
    EXPECT_EQ(message_of([&] { read(tiny_with(Json::parse(keys))); }), "") << keys;
  }
}

TEST(Config, OldAndNewSpellings) {
  const Json neox = {{"num_key_value_heads", nullptr}, {"head_dim", nullptr}, {"hidden_size", 16}};
  const auto with = [&](const char* keys) {
    Json config = tiny_with(neox, "gpt_neox");
    config.update(Json::parse(keys));
    return config;
  };
  for (const char* keys :
       {R"({"rotary_pct": 0.5, "rotary_emb_base": 500})", R"({"partial_rotary_factor": 0.5, "rotary_emb_base": 500})",
        R"({"rotary_pct": 0.5, "partial_rotary_factor": 0.5, "rotary_emb_base": 500, "rope_theta": 500.0})"}) {
    const RopeConfig rope = read(with(keys)).rope;
    EXPECT_EQ(rope.rotated, 0.5);
    EXPECT_EQ(rope.base, 500);
  }
  EXPECT_THAT(message_of([&] { read(with(R"({"rotary_pct": 0.5, "partial_rotary_factor": 0.25})")); }),
              HasSubstr("'rotary_pct' is 0.5 and 'partial_rotary_factor' is 0.25; they mean the same and must agree"));

  const Json falcon = Json::parse(R"({"model_type": "falcon", "hidden_size": 16, "vocab_size": 5, "n_layer": 2,
                                      "n_head": 4, "n_head_kv": 2, "new_decoder_architecture": true})");
  const DecoderConfig old = read(falcon);
  EXPECT_EQ(old.layers, 2);
  EXPECT_EQ(old.heads, 4);
  EXPECT_EQ(old.kv_heads, 2);
  Json both = falcon;
  both.update({{"num_hidden_layers", 2}, {"num_attention_heads", 4}, {"num_kv_heads", 2}});
  EXPECT_EQ(read(both).kv_heads, 2);
  both["num_kv_heads"] = 4;
  EXPECT_THAT(message_of([&] { read(both); }),
              HasSubstr("'num_kv_heads' is 4 and 'n_head_kv' is 2; they mean the same"));

  EXPECT_EQ(read(tiny_with({{"max_sequence_length", 77}})).max_positions, 77);
  EXPECT_EQ(read(tiny_with({{"max_sequence_length", 77}, {"max_position_embeddings", 33}})).max_positions, 33);
  EXPECT_THAT(message_of([] {
                read(tiny_with({{"max_sequence_length", 77}, {"rope_scaling", {{"type", "yarn"}, {"factor", 2}}}}));
              }),
              HasSubstr("'max_position_embeddings' is missing"));
}

TEST(Config, ClassesThatAreNotTheFamilys) {
  for (const char* keys :
       {R"({"architectures": ["LlamaForCausalLM"]})", R"({"architectures": ["LLaMAForCausalLM"]})",
        R"({"architectures": ["FSDPLlamaForCausalLM"]})", R"({"architectures": null})", R"({"architectures": []})",
        R"({"auto_map": {"AutoModelForCausalLM": "modeling_llama.LlamaForCausalLM", "AutoConfig": "a--b.LlamaConfig",
            "AutoTokenizer": "any/thing", "AutoModelForSequenceClassification": "x.LlamaForSequenceClassification"
            }})"}) {
    EXPECT_EQ(message_of([&] { read(tiny_with(Json::parse(keys))); }), "") << keys;
  }
  expect_refused({
      {"llama", R"({"architectures": ["LlamaCycleForCausalLM"]})",
       "'architectures' names LlamaCycleForCausalLM, which may compute something else than model_type llama; allowed "
       "are LlamaForCausalLM, LlamaModel"},
      {"llama", R"({"architectures": ["LlamaForSequenceClassification"]})", "names LlamaForSequenceClassification"},
      {"llama", R"({"architectures": "LlamaForCausalLM"})", "'architectures' is \"LlamaForCausalLM\"; must be a list"},
      {"llama", R"({"architectures": [1]})", "'architectures' holds 1"},
      {"llama", R"({"auto_map": {"AutoModelForCausalLM": "modeling_cycle.LlamaCycleForCausalLM"}})",
       "'auto_map.AutoModelForCausalLM' is \"modeling_cycle.LlamaCycleForCausalLM\": code of its own"},
      {"llama", R"({"auto_map": {"AutoConfig": "x.OtherConfig"}})", "'auto_map.AutoConfig' is \"x.OtherConfig\""},
      {"llama", R"({"auto_map": ["x"]})", "'auto_map' is [\"x\"]; must be an object"},
  });
}

TEST(Config, AFileWithoutModelTypeIsIdentifiedByItsArchitecture) {
  Json config = tiny_without("model_type");
  config["architectures"] = {"MistralForCausalLM"};
  EXPECT_EQ(read(config).family, "mistral");
  config["architectures"] = {"MiniCPM3ForCausalLM"};
  EXPECT_THAT(
      message_of([&] { read(config); }),
      HasSubstr("'model_type' is missing, and 'architectures' names MiniCPM3ForCausalLM, which is not supported; "
                "supported are BloomForCausalLM,"));
}

TEST(Config, IgnoredKeys) {
  const auto read_without = [](const Json& config, const IgnoredKeys& keys) {
    const CheckpointFolder folder(config);
    return read_decoder_config(folder.write(), keys);
  };
  EXPECT_EQ(read_without(tiny_with({{"mystery", 7}, {"riddle", 8}}), {"mystery", "riddle"}).layers, 1);
  const Json yarn = {{"rope_type", "yarn"}, {"factor", 2}, {"attn_factor", 0.9}};
  EXPECT_EQ(read_without(tiny_with({{"rope_scaling", yarn}}), {"rope_scaling.attn_factor"}).rope.factor, 2);
  EXPECT_THAT(message_of([&] { read_without(tiny_config(), {"mystery"}); }),
              AllOf(HasSubstr("--ignore-config-key: "), HasSubstr("config.json has no key 'mystery'")));
  EXPECT_THAT(message_of([&] { read_without(tiny_config(), {"vocab_size.size"}); }), HasSubstr("has no key 'size'"));
}

TEST(Config, BosOutsideOfTheTextConfig) {
  Json text = tiny_config("gemma3_text");
  text.erase("bos_token_id");
  const Json outer = {{"model_type", "gemma3"}, {"bos_token_id", 3}, {"text_config", text}};
  EXPECT_EQ(read(outer).bos_token, 3);
  Json both = outer;
  both["text_config"]["bos_token_id"] = 3;
  EXPECT_EQ(read(both).bos_token, 3);
  both["text_config"]["bos_token_id"] = 2;
  EXPECT_THAT(message_of([&] { read(both); }),
              HasSubstr("'bos_token_id' is 3 and 'text_config.bos_token_id' is 2; they must agree"));
  Json unknown = outer;
  unknown["text_config"]["attention_chunk_size"] = 1;
  EXPECT_THAT(message_of([&] { read(unknown); }), HasSubstr("unknown key 'text_config.attention_chunk_size'"));
}

TEST(Config, WhatTheReferenceItselfSaves) {
  Json config = tiny_config("qwen2_moe");
  config["use_sliding_window"] = false;
  config["sliding_window"] = 0;
  EXPECT_EQ(read(config).window.front(), 0);
  config = tiny_config("qwen3_moe");
  config.erase("num_experts");
  config["num_local_experts"] = 5;
  config["num_experts_per_tok"] = 2;
  EXPECT_EQ(read(config).experts.count, 5);
}

TEST(Config, NamesInsideOfTheTextConfig) {
  const auto with = [](const char* key, const Json& value) {
    Json text = tiny_config("gemma3_text");
    text[key] = value;
    return Json{{"model_type", "gemma3"}, {"text_config", text}};
  };
  EXPECT_EQ(read(with("model_type", nullptr)).family, "gemma3");
  EXPECT_THAT(message_of([&] { read(with("model_type", "llama")); }),
              HasSubstr("'text_config.model_type' is 'llama'; in a gemma3 checkpoint it must be 'gemma3_text'"));
  EXPECT_THAT(message_of([&] { read(with("architectures", {"FooForCausalLM"})); }), HasSubstr("FooForCausalLM"));
  EXPECT_THAT(message_of([&] {
                read(with("auto_map", {{"AutoModelForCausalLM", "x--other.Foo"}}));
              }),
              HasSubstr("code of its own"));
}

TEST(Config, KeysOfGgufFilesAreNotThoseOfConfigurations) {
  for (const char* family : {"gemma", "gemma2", "gemma3_text"}) {
    Json config = tiny_config(family);
    config["norm_offset"] = 0;
    EXPECT_EQ(read(config).norm_offset, 1) << family;
  }
}

TEST(Config, RopeMistakes) {
  expect_refused({
      {"llama", R"({"rope_theta": 0})", "'rope_theta' is 0"},
      {"llama", R"({"rope_scaling": [8]})", "'rope_scaling' is [8]; must be a JSON object"},
      {"llama", R"({"rope_scaling": {"rope_type": "dynamic", "factor": 2}})",
       "'rope_scaling.rope_type' is 'dynamic', which is not supported"},
      {"llama", R"({"rope_scaling": {"rope_type": "dynamic", "alpha": 1000}})",
       "'rope_scaling.rope_type' is 'dynamic', which is not supported"},
      {"hunyuan_v1_dense", R"({"rope_scaling": {"rope_type": "dynamic", "factor": 2}})",
       "'rope_scaling.rope_type' is 'dynamic', which is not supported without 'alpha'"},
      {"hunyuan_v1_dense", R"({"rope_scaling": {"rope_type": "dynamic", "alpha": 0.5}})",
       "'rope_scaling.alpha' is 0.5"},
      {"hunyuan_v1_dense", R"({"rope_scaling": {"rope_type": "linear", "factor": 2, "alpha": 1000}})",
       "unknown key 'rope_scaling.alpha'"},
      {"llama", R"({"rope_scaling": {"type": "longrope"}})", "'rope_scaling.short_factor' is missing"},
      {"llama", R"({"rope_scaling": {"type": "su", "short_factor": [1, -1]}})", "'rope_scaling.short_factor' holds -1"},
      {"llama", R"({"rope_scaling": {"type": "lineer"}})", "did you mean 'linear'?"},
      {"llama", R"({"rope_scaling": {"type": "linear", "rope_type": "yarn", "factor": 2}})", "they must agree"},
      {"llama", R"({"rope_scaling": {"rope_type": "linear"}})", "'rope_scaling.factor' is missing"},
      {"llama", R"({"rope_scaling": {"rope_type": "linear", "factor": 0.5}})", "'rope_scaling.factor' is 0.5"},
      {"llama", R"({"rope_scaling": {"rope_type": "linear", "factor": 2, "beta_fast": 3}})",
       "unknown key 'rope_scaling.beta_fast'"},
      {"llama", R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1}})",
       "'rope_scaling.high_freq_factor' is missing"},
      {"llama",
       R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}})",
       "the first must be greater"},
      {"llama", R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "beta_fast": 1, "beta_slow": 32}})",
       "must not be smaller"},
      {"llama", R"({"rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 4096}})",
       "the factor must be at least 1"},
      {"llama", R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "truncate": 1}})",
       "'rope_scaling.truncate' is 1"},
      {"llama", R"({"rope_theta": 1, "rope_scaling": {"rope_type": "yarn", "factor": 2}})", "yarn needs more than 1"},
      {"llama", R"({"rope_theta": 10000, "rope_parameters": {"rope_theta": 500000}})",
       "'rope_theta' is 10000 and 'rope_parameters.rope_theta' is 500000; they must agree"},
      {"llama",
       R"({"rope_scaling": {"type": "linear", "factor": 2}, "rope_parameters": {"rope_type": "linear", "factor": 4}})",
       "'rope_scaling' and 'rope_parameters' disagree"},
      {"qwen3",
       R"({"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}})",
       "they must agree"},
      {"qwen3", R"({"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {}}})",
       "give it to both"},
      {"qwen3", R"({"rope_parameters": {"full_attention": {}, "linear_attention": {}}})",
       "unknown key 'rope_parameters.linear_attention'"},
      {"llama", R"({"rope_parameters": {"partial_rotary_factor": 0.5}})",
       "'partial_rotary_factor' is 0.5; only whole heads"},
  });
}

TEST(Config, WindowMistakes) {
  expect_refused({
      {"mistral", R"({"sliding_window": 0})", "'sliding_window' is 0; must be an integer from 1"},
      {"qwen2", R"({"layer_types": ["full_attention", "full_attention"]})", "must be a list of 1 names, one per layer"},
      {"qwen2", R"({"layer_types": "full_attention"})", "must be a list of 1 names"},
      {"qwen2", R"({"layer_types": ["linear_attention"]})", "'layer_types' has \"linear_attention\" at layer 0"},
      {"qwen3", R"({"layer_types": ["sliding_attention"]})",
       "use_sliding_window is false and sliding_window is absent; set both"},
      {"qwen3", R"({"layer_types": ["sliding_attention"], "use_sliding_window": true, "sliding_window": null})",
       "sliding_window is null"},
      {"qwen3", R"({"max_window_layers": -1})", "'max_window_layers' is -1"},
      {"qwen2_moe", R"({"use_sliding_window": true})", "without 'layer_types'"},
      {"olmo3", R"({"rope_theta": 10000})", "give layers with a window this base or 500000"},
      {"gpt_neox", R"({"rope_theta": 777})", "'rope_theta' is 777 without 'rotary_emb_base'"},
      {"qwen3_next", R"({"hidden_act": "gelu", "head_dim": 8})", "also that of the convolution"},
  });
}

TEST(Config, MissingSizesAreNamed) {
  for (const char* key :
       {"num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size", "num_attention_heads"}) {
    EXPECT_THAT(message_of([&] { read(tiny_without(key)); }),
                HasSubstr(fmt::format("'{}' is missing; must be an integer", key)));
  }
  EXPECT_THAT(message_of([] { read(tiny_without("model_type")); }), HasSubstr("'model_type' is missing"));
}

TEST(Config, NoObject) {
  EXPECT_THAT(message_of([] { read(Json::array({1})); }), HasSubstr("the document is [1]; must be a JSON object"));
}

TEST(Config, AKeyWithControlCharactersStaysOnOneLine) {
  const std::string message = message_of([] { read(tiny_with({{"rope_\nthet", 1}})); });
  EXPECT_THAT(message, HasSubstr("unknown key"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(Config, InertKeysChangeNothing) {
  Json config = tiny_config();
  for (const std::string_view key : inert_keys()) config[std::string(key)] = "anything";
  config["attention_dropout"] = 0.5;
  const DecoderConfig with = read(config), without = read(tiny_config());
  EXPECT_EQ(with.layers, without.layers);
  EXPECT_EQ(parameter_count(with), parameter_count(without));
}

/// What the user is told about the keys of a configuration that is read.
std::vector<std::string> notes_of(const Json& config) {
  ConfigReader reader(config, "config.json");
  const Family& family = family_of_config(reader);
  check_class_names(reader, family);
  const DecoderConfig parsed = family.parse(reader);
  check_other_keys(reader, parsed, family, !has_own_code(reader));
  return reader.notes();
}

TEST(Config, AKeyThatTheReferenceDoesNotReadIsIgnoredAndNamed) {
  EXPECT_THAT(notes_of(tiny_config()), ::testing::IsEmpty());
  EXPECT_THAT(notes_of(tiny_with({{"mask_value", -1}})),
              ::testing::ElementsAre("a key of config.json that the Python reference of model_type 'llama' does not "
                                     "read: 'mask_value'; it is ignored"));
  EXPECT_THAT(notes_of(tiny_with({{"norm_scale", 0.5}, {"linear_impl_type", "x"}, {"a\nb", {{"c", 1}}}})),
              ::testing::ElementsAre(AllOf(HasSubstr("'linear_impl_type', 'norm_scale'; they are ignored"),
                                           ::testing::Not(HasSubstr("\n")))));
  Json text = tiny_config("gemma3_text");
  text["mystery"] = 1;
  EXPECT_THAT(notes_of({{"model_type", "gemma3"}, {"text_config", text}, {"riddle", 2}}),
              ::testing::ElementsAre(HasSubstr("'gemma3_text' does not read: 'text_config.mystery'"),
                                     HasSubstr("'gemma3' does not read: 'riddle'")));
}

TEST(Config, AKeyThatMayMeanSomethingIsNotIgnored) {
  const Json own_code = {{"AutoModelForCausalLM", "modeling_llama.LlamaForCausalLM"}};
  expect_refused({
      {"mistral", R"({"sliding_windw": 64})", "did you mean 'sliding_window'?"},
      {"llama", R"({"attention_window_size": 64})", "unknown key 'attention_window_size'"},
      {"llama", R"({"attention_chunk_size": 8192})", "unknown key 'attention_chunk_size'"},
      {"llama", R"({"text_config": {"a": 1}})", "unknown key 'text_config'"},
      {"llama", R"({"num_mtp_layers": 3})", "'num_mtp_layers' is 3"},
  });
  EXPECT_THAT(message_of([&] {
                read(tiny_with({{"auto_map", own_code}, {"mystery", 1}}));
              }),
              HasSubstr("unknown key 'mystery'"));
  EXPECT_EQ(message_of([&] { read(tiny_with({{"auto_map", {{"AutoTokenizer", "a.B"}}}, {"mystery", 1}})); }), "");
}

TEST(Config, AKeyOfTheReferenceAtItsUsualValueSaysNothing) {
  EXPECT_THAT(notes_of(tiny_with({{"slow_but_exact", false}}, "llama")), ::testing::SizeIs(1));  // BLOOM's alone
  EXPECT_THAT(notes_of(tiny_with({{"base_config_key", ""}})), ::testing::IsEmpty());
  EXPECT_THAT(message_of([] { read(tiny_with({{"base_config_key", "x"}})); }), HasSubstr("base_config_key"));
  EXPECT_TRUE(reference_key("llama", "rope_theta").read);
  EXPECT_EQ(reference_key("llama", "hidden_act").usual_value, "\"silu\"");
  EXPECT_EQ(reference_key("qwen2", "tie_word_embeddings").usual_value, "false");  // of the family, not of all
  EXPECT_TRUE(reference_key("gpt2", "max_position_embeddings").read);             // another name of n_positions
  EXPECT_FALSE(reference_key("llama", "mask_value").read);
  EXPECT_TRUE(reference_key("no_such_family", "mask_value").read);
}

TEST(Config, TheReferenceOfEveryFamilyIsKnown) {
  for (const Family& family : families()) {
    EXPECT_FALSE(reference_key(family.name, "no_such_key").read) << family.name;
    EXPECT_TRUE(reference_key(family.name, "vocab_size").read) << family.name;
  }
  for (const auto& [model_type, keys] : reference::family_keys()) {
    EXPECT_EQ(family_named(model_type, "").name, model_type);
    std::istringstream words{std::string(keys) + " " + std::string(reference::shared_keys)};
    for (std::string word; words >> word;) {
      const auto equals = word.find('=');
      EXPECT_TRUE(equals == std::string::npos || Json::accept(word.substr(equals + 1))) << word;
    }
  }
}

TEST(Config, NamesOfModelsAndFilesAreNotRefused) {
  const Json own_code = {{"AutoModelForCausalLM", "modeling_llama.LlamaForCausalLM"}};
  const Json names = {{"_model_name_or_path", "/a/b"},
                      {"_name_or_path", "c"},
                      {"model_name", "d"},
                      {"base_model_name_or_path", "e"},
                      {"auto_map", own_code}};
  EXPECT_THAT(notes_of(tiny_with(names)), ::testing::IsEmpty());
}

// The reference reads these numbers and does not use them.
TEST(Config, SoftCapsThatTheReferenceOfGemma3DoesNotApply) {
  const Json caps = {{"attn_logit_softcapping", 5}, {"final_logit_softcapping", 7}};
  const DecoderConfig alone = read(tiny_with(caps, "gemma3_text"));
  EXPECT_EQ(alone.attention_soft_cap, 0);
  EXPECT_EQ(alone.logit_soft_cap, 7);
  EXPECT_THAT(notes_of(tiny_with(caps, "gemma3_text")),
              ::testing::ElementsAre(HasSubstr("'attn_logit_softcapping' is 5; as in the Python reference it is not")));
  const Json inside = {{"model_type", "gemma3"}, {"text_config", tiny_with(caps, "gemma3_text")}};
  EXPECT_EQ(read(inside).attention_soft_cap, 0);
  EXPECT_EQ(read(inside).logit_soft_cap, 0);
  EXPECT_THAT(notes_of(inside), ::testing::ElementsAre(HasSubstr("'text_config.attn_logit_softcapping' is 5"),
                                                       HasSubstr("'text_config.final_logit_softcapping' is 7")));
  EXPECT_EQ(read(tiny_with(caps, "gemma2")).attention_soft_cap, 5);
  expect_refused({{"gemma3_text", R"({"attn_logit_softcapping": -1})", "'attn_logit_softcapping' is -1"}});
}

TEST(Config, EachInertKeyIsInOneGroupWithAReason) {
  std::set<std::string_view> seen;
  for (const InertGroup& group : inert_groups()) {
    EXPECT_FALSE(group.why.empty());
    for (const std::string_view key : group.keys) EXPECT_TRUE(seen.insert(key).second) << key;
  }
  EXPECT_EQ(seen.size(), inert_keys().size());
}

TEST(Config, RopeOfBothSpellings) {
  const char* llama3 = R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                           "original_max_position_embeddings": 8192, "rope_theta": 500000.0})";
  const Json parameters = Json::parse(llama3);
  Json scaling = parameters;
  scaling.erase("rope_theta");
  for (const Json& changes :
       {Json{{"rope_parameters", parameters}}, Json{{"rope_theta", 500000.0}, {"rope_scaling", scaling}},
        Json{{"rope_theta", 500000.0}, {"rope_scaling", scaling}, {"rope_parameters", parameters}},
        Json{{"rope_parameters", {{"full_attention", parameters}, {"sliding_attention", parameters}}}}}) {
    const RopeConfig rope = read(tiny_with(changes)).rope;
    EXPECT_EQ(rope.scaling, RopeScaling::llama3);
    EXPECT_EQ(rope.base, 500000);
    EXPECT_EQ(rope.factor, 8);
    EXPECT_EQ(rope.low_frequency_factor, 1);
    EXPECT_EQ(rope.high_frequency_factor, 4);
    EXPECT_EQ(rope.original_max_positions, 8192);
  }
}

TEST(Config, RopeDefaults) {
  for (const char* changes : {"{}", R"({"rope_scaling": null})", R"({"rope_parameters": {"rope_type": "default"}})"}) {
    const RopeConfig rope = read(tiny_with(Json::parse(changes))).rope;
    EXPECT_EQ(rope.scaling, RopeScaling::none);
    EXPECT_EQ(rope.base, 10000);
  }
}

RopeConfig read_yarn(const char* keys) {
  Json scaling = Json::parse(keys);
  scaling["rope_type"] = "yarn";
  return read(tiny_with({{"rope_scaling", scaling}, {"max_position_embeddings", 4096}})).rope;
}

TEST(Config, YarnByHand) {
  const RopeConfig plain = read_yarn(R"({"factor": 4, "original_max_position_embeddings": 1024})");
  EXPECT_EQ(plain.factor, 4);
  EXPECT_EQ(plain.beta_fast, 32);
  EXPECT_EQ(plain.beta_slow, 1);
  EXPECT_TRUE(plain.truncate);
  EXPECT_DOUBLE_EQ(plain.attention_factor.value(), 0.1 * std::log(4.0) + 1);

  const RopeConfig derived =
      read_yarn(R"({"factor": null, "original_max_position_embeddings": 512, "beta_fast": 16, "beta_slow": 2,
                                           "truncate": false})");
  EXPECT_EQ(derived.factor, 8);  // 4096 / 512
  EXPECT_EQ(derived.beta_fast, 16);
  EXPECT_EQ(derived.beta_slow, 2);
  EXPECT_FALSE(derived.truncate);

  const RopeConfig mscale = read_yarn(R"({"factor": 4, "mscale": 1.0, "mscale_all_dim": 0.5})");
  EXPECT_DOUBLE_EQ(mscale.attention_factor.value(), (0.1 * std::log(4.0) + 1) / (0.05 * std::log(4.0) + 1));
  EXPECT_EQ(mscale.original_max_positions, 4096);
  EXPECT_DOUBLE_EQ(read_yarn(R"({"factor": 4, "mscale": 0.7, "mscale_all_dim": 0})").attention_factor.value(),
                   0.1 * std::log(4.0) + 1);
  EXPECT_EQ(read_yarn(R"({"factor": 4, "mscale": 1.0, "mscale_all_dim": 0.5, "attention_factor": 1.5})")
                .attention_factor.value(),
            1.5);
  EXPECT_EQ(read_yarn(R"({"factor": 1})").attention_factor.value(), 1);
}

TEST(Config, LinearFactor) {
  const RopeConfig rope = read(tiny_with({{"rope_scaling", {{"type", "linear"}, {"factor", 2.5}}}})).rope;
  EXPECT_EQ(rope.scaling, RopeScaling::linear);
  EXPECT_EQ(rope.factor, 2.5);
}

TEST(Config, Bos) {
  EXPECT_EQ(read(tiny_with({{"bos_token_id", 3}})).bos_token, 3);
  EXPECT_EQ(read(tiny_with({{"bos_token_id", {2, 4}}})).bos_token, 2);
  EXPECT_EQ(read(tiny_with({{"bos_token_id", nullptr}})).bos_token, std::nullopt);
  EXPECT_EQ(read(tiny_with({{"bos_token_id", Json::array()}})).bos_token, std::nullopt);
  EXPECT_EQ(read(tiny_without("bos_token_id")).bos_token, 1);  // the family's default
}

TEST(Config, HeadsAndActivation) {
  EXPECT_EQ(read(tiny_with({{"num_key_value_heads", nullptr}})).kv_heads, 2);
  EXPECT_EQ(read(tiny_with({{"head_dim", nullptr}, {"hidden_size", 8}})).head_dim, 4);  // 8 / 2 heads
  EXPECT_EQ(read(tiny_with({{"head_dim", 6}})).head_dim, 6);                            // may differ from width / heads
  EXPECT_EQ(read(tiny_with({{"hidden_act", "gelu"}})).activation, Activation::gelu_erf);
  EXPECT_EQ(read(tiny_with({{"hidden_act", "gelu_pytorch_tanh"}})).activation, Activation::gelu_tanh);
  EXPECT_EQ(read(tiny_config()).activation, Activation::silu);
  EXPECT_NO_THROW(read(tiny_with({{"dtype", "float32"}, {"torch_dtype", "torch.float32"}})));
}

TEST(ConfigReader, NamesNestedKeys) {
  const Json document = Json::parse(R"({"outer": {"inner": 1, "other": 2}})");
  ConfigReader reader(document, "here");
  auto outer = reader.object("outer");
  ASSERT_TRUE(outer.has_value());
  EXPECT_EQ(outer->integer("inner", 0, 9), 1);
  EXPECT_EQ(outer->number("absent", 0, 9, 4.5), 4.5);
  EXPECT_EQ(message_of([&] { outer->text("other"); }), "here: 'outer.other' is 2; must be a string");
  EXPECT_NO_THROW(outer->refuse_unread());
  EXPECT_NO_THROW(reader.refuse_unread());
  EXPECT_FALSE(reader.object("nothing").has_value());
}

}  // namespace
}  // namespace gainlens::models
