// Adapters that PEFT wrote (tests/golden/make_lora_golden.py), and what is refused in their files.
#include "models/checkpoint/lora_adapter.h"

#include "checkpoint_folder.h"
#include "formats/adapter_folder.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/load_decoder.h"
#include "models/checkpoint/lora_weights.h"
#include "models/checkpoint/save_checkpoint.h"
#include "models/decoder/decoder.h"
#include "support/file_bytes.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace gainlens::models {
namespace lora_adapter_test {

using models::testing::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string golden_folder = GAINLENS_SOURCE_DIR "/tests/golden/";

/// A copy of a golden adapter whose base is found from anywhere.
class LoraAdapterFiles : public ::testing::Test {
 protected:
  std::filesystem::path adapter(
      const std::string& name, const std::string& base = {}, const std::function<void(Json&)>& change = [](Json&) {}) {
    const std::filesystem::path from = golden_folder + "lora/" + name, to = folder_.path() / "adapter";
    std::filesystem::remove_all(to);
    std::filesystem::create_directories(to);
    std::filesystem::copy_file(from / formats::adapter_weights_name, to / formats::adapter_weights_name);
    Json config = read_json_file(from / formats::adapter_config_name);
    config["base_model_name_or_path"] =
        base.empty() ? golden_folder + "models/" + config.at("base_model_name_or_path").get<std::string>() : base;
    change(config);
    gainlens::testing::write_file(to / formats::adapter_config_name, config.dump());
    return to;
  }
  gainlens::testing::TemporaryFolder folder_;
};

at::Tensor logits_of(const std::filesystem::path& path, const Json& expected, const LoadOptions& options) {
  const c10::InferenceMode inference;
  const auto model = load_own_decoder(path, options);
  const auto ids = expected.at("ids").get<std::vector<std::int64_t>>();
  const at::Tensor hidden = model->forward({at::tensor(ids, at::kLong).unsqueeze(0)}, {}, {}).hidden[0];
  return model->unembed(hidden).to(at::kDouble);
}

double error_against(const at::Tensor& logits, const Json& expected) {
  double worst = 0;
  for (std::int64_t row = 0; row < logits.size(0); ++row) {
    const auto numbers = expected.at("logits").at(static_cast<std::size_t>(row)).get<std::vector<double>>();
    worst = std::max(worst, (logits[row] - at::tensor(numbers, at::kDouble)).abs().max().item<double>());
  }
  return worst;
}

TEST_F(LoraAdapterFiles, LogitsAreThoseOfPeft) {
  std::size_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder + "lora")) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const Json expected = read_json_file(entry.path() / "expected.json");
    const std::filesystem::path path = adapter(name);
    LoadOptions options;
    options.dtype = at::kDouble;
    const double wide = error_against(logits_of(path, expected, options), expected);
    EXPECT_LT(wide, 1e-8);
    options.dtype = at::kFloat;
    const at::Tensor narrow = logits_of(path, expected, options);
    EXPECT_LT(error_against(narrow, expected), 1e-3);
    options.stream = true;
    EXPECT_TRUE(logits_of(path, expected, options).equal(narrow));
    std::printf("%-16s largest difference of a logit: %.2g in float64, %.2g in float32\n", name.c_str(), wide,
                error_against(narrow, expected));
    ++compared;
  }
  EXPECT_GE(compared, 14u);
}

TEST_F(LoraAdapterFiles, TheBaseMayBeAGgufFile) {
  for (const char* name : {"llama", "gemma3", "gpt2", "gpt-neox", "falcon", "phi3-window", "cohere2", "qwen2-tied"}) {
    SCOPED_TRACE(name);
    const Json expected = read_json_file(golden_folder + "lora/" + name + "/expected.json");
    LoadOptions options;
    options.dtype = at::kDouble;
    const std::string base = golden_folder + "gguf/" + name + ".gguf";
    EXPECT_LT(error_against(logits_of(adapter(name, base), expected, options), expected), 1e-4);
  }
}

TEST_F(LoraAdapterFiles, AnAdapterOpensAsACheckpointOfItsBase) {
  const std::filesystem::path path = adapter("llama.patterns");
  const CheckpointSource source = open_checkpoint(path);
  EXPECT_EQ(source.path, path);
  EXPECT_EQ(source.base, golden_folder + "models/llama");
  EXPECT_EQ(source.config.layers, read_decoder_config(path).layers);
  ASSERT_EQ(source.files.size(), 4u);
  EXPECT_EQ(source.files[1].filename(), formats::adapter_weights_name);
  ASSERT_TRUE(source.adapter);
  EXPECT_EQ(source.adapter->factors.size(), 9u);
  EXPECT_THAT(source.remarks, ElementsAre(HasSubstr("in 9 projections by a LoRA adapter")));
  EXPECT_NO_THROW(check_checkpoint(path));
  // The weights with the adapter in them are a checkpoint without adapter.
  const Checkpoint whole = load_checkpoint(path);
  const Json document = read_json_file(golden_folder + "models/llama/config.json");
  save_checkpoint(folder_.path() / "merged", OrderedJson(document), whole.weights, at::kFloat);
  const Json expected = read_json_file(golden_folder + "lora/llama.patterns/expected.json");
  EXPECT_TRUE(logits_of(folder_.path() / "merged", expected, {}).equal(logits_of(path, expected, {})));
}

TEST_F(LoraAdapterFiles, WhatIsNotPlainLoraIsRefusedInOneLine) {
  const auto refused = [&](const std::string& key, const Json& value, const std::string& reason) {
    const std::filesystem::path path = adapter("llama.patterns", {}, [&](Json& config) { config[key] = value; });
    const std::string message = message_of([&] { open_checkpoint(path); });
    EXPECT_THAT(message, HasSubstr(reason)) << key;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  };
  refused("peft_type", "LOHA", "'peft_type' is LOHA; of adapters, only LORA is read");
  refused("peft_type", 3, "peft_type");
  refused("use_dora", true, "DoRA is not read");
  refused("bias", "all", "biases of the base were trained too");
  refused("lora_bias", true, "factors with biases");
  refused("modules_to_save", {"lm_head"}, "whole modules were trained too");
  refused("layers_to_transform", {0}, "does not name");
  refused("layers_to_transform", "0", "'layers_to_transform' is \"0\"; must be a layer or a list of layers");
  refused("target_modules", ".*q_proj", "does not name");
  refused("target_modules", "(q_proj", "'target_modules': the pattern '(q_proj' is no regular expression");
  refused("target_modules", "(.+)+(.+)+\\.j", "'target_modules': the pattern '(.+)+(.+)+\\.j' stops at 'model.layers.");
  refused("target_modules", 3, "must be a list of names of modules, or a text with a regular expression");
  refused("target_modules", nullptr, "'target_modules' is missing or empty");
  refused("target_modules", Json::array(), "'target_modules' is missing or empty");
  refused("target_modules", {"q_proj"}, "does not name");
  refused("exclude_modules", {"v_proj"}, "does not name (or another key leaves out)");
  refused("exclude_modules", ".*down_proj", "does not name (or another key leaves out)");
  refused("target_parameters", {"mlp.experts.down_proj"}, "factors of single parameters");
  refused("trainable_token_indices", {1, 2}, "rows of the embedding");
  refused("init_lora_weights", "pissa", "a start that changes the base");
  refused("loftq_config", {{"loftq_bits", 4}}, "'loftq_config' is set");
  refused("alora_invocation_tokens", {1}, "this key is not known");
  refused("layer_replication", {{0, 2}}, "this key is not known");
  refused("r", 0, "'r'");
  refused("r", 3, "is of rank 4, and adapter_config.json says 3");
  refused("lora_alpha", "8", "'lora_alpha'");
  refused("rank_pattern", {{"v_proj", 3}}, "says");
  refused("rank_pattern", {{".*v_proj", 3}}, "is of rank 2, and adapter_config.json says 3");
  refused("rank_pattern", {{"v_proj", "2"}}, "'rank_pattern' of 'v_proj' is \"2\"; must be a number");
  refused("alpha_pattern", {{"q_proj", 2}, {"self_attn.q_proj", 3}}, "both");
  refused("base_model_name_or_path", nullptr, "'base_model_name_or_path' is missing");
  refused("base_model_name_or_path", "/none/such", "no such folder");
  refused("base_model_name_or_path", golden_folder + "models/gpt2", "the adapter is of another model");
  refused("base_model_name_or_path", golden_folder + "models/gemma3", "outputs of");
  refused("base_model_name_or_path", golden_folder + "lora/llama", "is an adapter itself");
}

TEST_F(LoraAdapterFiles, LayersAreChosenBesideNamesAlone) {
  const auto refusal = [&](const std::function<void(Json&)>& change) {
    return message_of([&] { open_checkpoint(adapter("llama.layers", {}, change)); });
  };
  EXPECT_EQ(refusal([](Json& config) { config["layers_pattern"] = Json::array({"h", "layers"}); }), "");
  EXPECT_EQ(refusal([](Json& config) { config["layers_pattern"] = nullptr; }), "");
  EXPECT_THAT(refusal([](Json& config) { config["layers_to_transform"] = 0; }),
              HasSubstr("factors of 'model.layers.2.mlp.down_proj'"));
  EXPECT_THAT(refusal([](Json& config) { config["layers_pattern"] = "h"; }), HasSubstr("does not name"));
  EXPECT_THAT(refusal([](Json& config) { config["target_modules"] = "all-linear"; }),
              HasSubstr("PEFT takes it beside names alone"));
}

TEST_F(LoraAdapterFiles, TheEmbeddingAndTheHeadAreChangedWhereTheyAreTwoTensors) {
  const auto refusal = [&](
                           const std::string& base, const std::function<void(Json&)>& change = [](Json&) {}) {
    return message_of([&] { open_checkpoint(adapter("llama.ends", base, change)); });
  };
  // "all-linear" means neither of them.
  EXPECT_THAT(refusal("", [](Json& config) { config["target_modules"] = "all-linear"; }),
              HasSubstr("has factors of 'lm_head', which"));
  EXPECT_THAT(refusal("",
                      [](Json& config) {
                        config["target_modules"] = "all-linear";
                        config["exclude_modules"] = nullptr;
                      }),
              HasSubstr("which 'target_modules'"));
  const std::filesystem::path tied = folder_.path() / "tied";
  std::filesystem::copy(golden_folder + "models/llama", tied);
  Json config = read_json_file(tied / "config.json");
  config["tie_word_embeddings"] = true;
  gainlens::testing::write_file(tied / "config.json", config.dump());
  EXPECT_THAT(refusal(tied.string()), HasSubstr("factors of 'lm_head', and in this base the head is the embedding"));
  // Another base: one number of its head differs from what the adapter repeats.
  const std::filesystem::path other = folder_.path() / "other";
  std::filesystem::create_directories(other);
  std::filesystem::copy_file(golden_folder + "models/llama/config.json", other / "config.json");
  const auto file = formats::TensorFile::open(golden_folder + "models/llama/model.safetensors");
  std::vector<std::byte> head;
  std::vector<formats::TensorToWrite> tensors;
  for (const auto& [name, entry] : file.entries()) {
    if (name == "lm_head.weight") head = {entry.bytes.begin(), entry.bytes.end()};
    tensors.push_back(
        {name, entry.dtype, entry.shape, name == "lm_head.weight" ? std::span<const std::byte>(head) : entry.bytes});
  }
  head.front() ^= std::byte{1};
  formats::write_tensors(other / "model.safetensors", tensors);
  EXPECT_THAT(refusal(other.string()),
              HasSubstr("holds weights of the base, 'lm_head.weight', which are not those of"));
}

TEST_F(LoraAdapterFiles, BrokenFactorsAreRefused) {
  using formats::DType;
  using formats::TensorToWrite;
  const std::string start = "base_model.model.model.layers.0.self_attn.q_proj.";
  const std::vector<float> zeros(2 * 48);
  const auto bytes = std::as_bytes(std::span(zeros));
  const TensorToWrite down{start + "lora_A.weight", DType::f32, {2, 48}, bytes};
  const TensorToWrite up{start + "lora_B.weight", DType::f32, {48, 2}, bytes};
  const auto refusal = [&](const std::vector<TensorToWrite>& tensors) {
    const std::filesystem::path path = adapter("llama");
    formats::write_tensors(path / formats::adapter_weights_name, tensors);
    return message_of([&] { load_checkpoint(path); });
  };
  EXPECT_EQ(refusal({down, up}), "");
  EXPECT_THAT(refusal({down}), HasSubstr("has lora_A without lora_B"));
  EXPECT_THAT(refusal({up}), HasSubstr("has lora_B without lora_A"));
  EXPECT_THAT(refusal({}), HasSubstr("holds no factors"));
  EXPECT_THAT(refusal({down, up, {start + "bias", DType::f32, {96}, bytes}}),
              HasSubstr("is no factor of a projection"));
  EXPECT_THAT(refusal({down, {start + "lora_B.weight", DType::f32, {24, 4}, bytes}}),
              HasSubstr("has A [2, 48] and B [24, 4], and the base has 48 outputs of 48 inputs there"));
  EXPECT_THAT(refusal({{"base_model.model.model.norm.lora_A.weight", DType::f32, {2, 48}, bytes},
                       {"base_model.model.model.norm.lora_B.weight", DType::f32, {48, 2}, bytes}}),
              HasSubstr("'model.norm' is no projection of the base"));
  std::vector<float> huge(2 * 48, 3e38f);
  const auto large = std::as_bytes(std::span(huge));
  EXPECT_THAT(refusal({{down.name, DType::f32, {2, 48}, large}, {up.name, DType::f32, {48, 2}, large}}),
              HasSubstr("the change of 'model.layers.0.self_attn.q_proj' is not finite"));
  const std::filesystem::path path = adapter("llama");
  std::filesystem::remove(path / formats::adapter_weights_name);
  EXPECT_THAT(message_of([&] { open_checkpoint(path); }), HasSubstr("no adapter_model.safetensors"));
  gainlens::testing::write_file(path / "model.safetensors", "");
  EXPECT_THAT(message_of([&] { open_checkpoint(path); }), HasSubstr("either could be meant"));
}

std::vector<std::string> names_of(const std::string& model, const std::vector<std::string>& targets) {
  std::vector<std::string> names;
  for (const LoraModule& module : lora_modules(read_decoder_config(golden_folder + "models/" + model), targets)) {
    if (module.slot.layer == 0) names.push_back(module.name);
  }
  return names;
}

TEST(LoraModules, TargetsAreTheModulesOfTheFamily) {
  EXPECT_THAT(names_of("llama", {"q", "down"}), ElementsAre("self_attn.q_proj", "mlp.down_proj"));
  EXPECT_THAT(names_of("gpt2", {}), ElementsAre("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"));
  EXPECT_THAT(names_of("gpt-neox", {"v", "k", "q"}), ElementsAre("attention.query_key_value"));
  EXPECT_THAT(names_of("phi3-window", {"gate", "up"}), ElementsAre("mlp.gate_up_proj"));
  EXPECT_THAT(names_of("opt", {"up", "o"}), ElementsAre("self_attn.out_proj", "fc1"));
  const auto refused = [](const std::string& model, const std::vector<std::string>& targets) {
    return message_of([&] { names_of(model, targets); });
  };
  EXPECT_THAT(refused("llama", {"qq"}), HasSubstr("'qq'; must be one of q, k, v, o, gate, up, down"));
  EXPECT_THAT(refused("llama", {"q", "q"}), HasSubstr("'q' is given twice"));
  EXPECT_THAT(refused("gpt2", {"q", "v"}), HasSubstr("q, v and k are one projection in this model, 'attn.c_attn'"));
  EXPECT_THAT(refused("gpt2", {"gate", "o"}), HasSubstr("this model has no 'gate'; it has o"));
  EXPECT_THAT(refused("deepseek-v2", {}), HasSubstr("latent attention"));
}

TEST(LoraModules, ARankIsOfAtMostTheSmallerSide) {
  const std::vector<LoraModule> modules = lora_modules(read_decoder_config(golden_folder + "models/llama"), {"q", "k"});
  EXPECT_EQ(lora_parameter_count(modules, 2), 3 * (2 * (48 + 48) + 2 * (48 + 24)));
  for (const std::int64_t rank : {-1, 0, 25})
    EXPECT_THAT(message_of([&] { lora_parameter_count(modules, rank); }),
                HasSubstr("--lora-rank: " + std::to_string(rank) + "; must be 1 to "));
}

}  // namespace lora_adapter_test
}  // namespace gainlens::models
