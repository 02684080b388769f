#include "core/check.h"
#include "core/error.h"
#include "core/nearest.h"
#include "models/families/family.h"

#include <fmt/ranges.h>

namespace gainlens::models {

Family afmoe();
Family bloom();
Family cohere2();
Family deepseek_v2();
Family deepseek_v3();
Family ernie4_5();
Family exaone4();
Family falcon();
Family gemma1();
Family gemma2();
Family gemma3();
Family gemma3_multimodal();
Family glm4();
Family gpt2();
Family gpt_neo();
Family gpt_neox();
Family gpt_oss();
Family gptj();
Family granite();
Family granite_swa();
Family granitemoe_swa();
Family hunyuan_v1_dense();
Family lfm2();
Family lfm3();
Family llama();
Family mimo_v2_flash();
Family mistral();
Family mixtral();
Family mpt();
Family olmo2();
Family olmo3();
Family opt();
Family phi();
Family phi3();
Family qwen2();
Family qwen2_moe();
Family qwen3();
Family qwen3_5();
Family qwen3_5_moe();
Family qwen3_5_moe_multimodal();
Family qwen3_5_multimodal();
Family qwen3_moe();
Family qwen3_next();
Family seed_oss();
Family smollm3();
Family stablelm();
Family starcoder2();

std::span<const Family> families() {
  static const std::vector<Family> table = {
      afmoe(),
      bloom(),
      cohere2(),
      deepseek_v2(),
      deepseek_v3(),
      ernie4_5(),
      exaone4(),
      falcon(),
      gemma1(),
      gemma2(),
      gemma3(),
      gemma3_multimodal(),
      glm4(),
      gpt2(),
      gpt_neo(),
      gpt_neox(),
      gpt_oss(),
      gptj(),
      granite(),
      granite_swa(),
      granitemoe_swa(),
      hunyuan_v1_dense(),
      lfm2(),
      lfm3(),
      llama(),
      mimo_v2_flash(),
      mistral(),
      mixtral(),
      mpt(),
      olmo2(),
      olmo3(),
      opt(),
      phi(),
      phi3(),
      qwen2(),
      qwen2_moe(),
      qwen3(),
      qwen3_5(),
      qwen3_5_moe(),
      qwen3_5_moe_multimodal(),
      qwen3_5_multimodal(),
      qwen3_moe(),
      qwen3_next(),
      seed_oss(),
      smollm3(),
      stablelm(),
      starcoder2(),
  };
  return table;
}

TensorNames tensor_names(const Family& family, const DecoderConfig& config) {
  return family.names == nullptr ? family.tensors : family.names(config, family.tensors);
}

namespace {

constexpr std::string_view heads_by_layer =
    "layers with a window have another number of query heads than the others, and a run stores one number";

/// Families that are not in the table because they need what no decoder computes.
constexpr std::pair<std::string_view, std::string_view> left_out[] = {
    {"lfm2_moe", "its experts beside short convolutions are not read"},
    {"step3p5", heads_by_layer},
    {"step3p7", heads_by_layer},
};

}  // namespace

const Family& family_named(std::string_view model_type, std::string_view where) {
  for (const auto& [name, why] : left_out)
    CHECK(model_type != name, "{}: model_type '{}' is not supported: {}", where, name, why);
  std::vector<std::string> names;
  for (const Family& family : families()) {
    if (family.name == model_type) return family;
    names.emplace_back(family.name);
  }
  throw_invalid("{}: model_type '{}' is not supported; supported are {}{}", where, printable(model_type, 60),
                fmt::join(names, ", "), did_you_mean(model_type.substr(0, 60), names));
}

}  // namespace gainlens::models
