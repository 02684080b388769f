// config.json: types, ranges and sizes, spellings, classes, BOS.
#include "models/checkpoint/checkpoint_source.h"
#include "models/config_mutants.h"
#include "models/families/config_reader.h"
#include "models/families/reference_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::models {
namespace config_test {

using models::testing::CheckpointFolder;
using models::testing::expect_refused;
using models::testing::message_of;
using models::testing::read;
using models::testing::tiny_config;
using models::testing::tiny_with;
using models::testing::tiny_without;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
                "supported are AfmoeForCausalLM, BloomForCausalLM,"));
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
      {"olmo3", "{}", "no 'rope_theta'; version 4.57 of the reference takes 10000, version 5 takes 500000"},
      {"qwen3_moe", R"({"use_sliding_window": true, "max_window_layers": 1})",
       "'max_window_layers' or 'layer_types' leaves layers without a window"},
      {"qwen3_moe", R"({"use_sliding_window": true, "sliding_window": 9, "layer_types": ["full_attention"]})",
       "gives it to all layers"},
      {"gemma3_text", R"({"_sliding_window_pattern": 4})",
       "'_sliding_window_pattern' is 4, and the Python reference ignores it and computes with 6"},
      {"cohere2", R"({"_sliding_window_pattern": 3})", "computes with 4"},
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

TEST(Config, Bos) {
  EXPECT_EQ(read(tiny_with({{"bos_token_id", 3}})).bos_token, 3);
  EXPECT_EQ(read(tiny_with({{"bos_token_id", {2, 4}}})).bos_token, 2);
  EXPECT_EQ(read(tiny_with({{"bos_token_id", nullptr}})).bos_token, std::nullopt);
  EXPECT_EQ(read(tiny_with({{"bos_token_id", Json::array()}})).bos_token, std::nullopt);
  EXPECT_EQ(read(tiny_without("bos_token_id")).bos_token, 1);  // the family's default
  for (const std::int64_t outside : {5, -1}) {
    CheckpointFolder folder(tiny_with({{"bos_token_id", outside}, {"eos_token_id", 7}, {"pad_token_id", 9}}));
    folder.add_tiny_tensors();
    const CheckpointSource source = open_checkpoint(folder.write());
    EXPECT_EQ(source.config.bos_token, std::nullopt);
    EXPECT_THAT(source.notes, ElementsAre(fmt::format(
                                  "bos_token_id is {}, and the vocabulary has 5 tokens; the model is taken as one "
                                  "without a BOS",
                                  outside)));
  }
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

}  // namespace config_test
}  // namespace gainlens::models
