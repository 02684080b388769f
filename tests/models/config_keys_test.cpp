// config.json: which keys mean something, which compute nothing, which are refused, and what the user is told.
#include "models/checkpoint/model_size.h"
#include "models/config_mutants.h"
#include "models/families/class_names.h"
#include "models/families/config_reader.h"
#include "models/families/inert_keys.h"
#include "models/families/other_keys.h"
#include "models/families/reference_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace gainlens::models {
namespace config_keys_test {

using models::testing::CheckpointFolder;
using models::testing::expect_refused;
using models::testing::message_of;
using models::testing::read;
using models::testing::tiny_config;
using models::testing::tiny_with;
using ::testing::AllOf;
using ::testing::HasSubstr;

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
      {"llamma", "{}", "model_type 'llamma' is not supported; supported are afmoe, bloom, cohere2, deepseek_v2,"},
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

}  // namespace config_keys_test
}  // namespace gainlens::models
