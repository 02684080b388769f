#include "core/error.h"
#include "core/nearest.h"
#include "models/families/family.h"

#include <fmt/ranges.h>

namespace gainlens::models {

Family bloom();
Family falcon();
Family gemma2();
Family gemma3();
Family gemma3_multimodal();
Family gpt2();
Family gpt_neox();
Family gpt_oss();
Family llama();
Family mistral();
Family mpt();
Family olmo2();
Family phi3();
Family qwen2();
Family qwen3();
Family qwen3_5();
Family qwen3_5_moe();
Family qwen3_5_moe_multimodal();
Family qwen3_5_multimodal();
Family qwen3_moe();
Family qwen3_next();
Family stablelm();

std::span<const Family> families() {
  static const std::vector<Family> table = {
      bloom(),
      falcon(),
      gemma2(),
      gemma3(),
      gemma3_multimodal(),
      gpt2(),
      gpt_neox(),
      gpt_oss(),
      llama(),
      mistral(),
      mpt(),
      olmo2(),
      phi3(),
      qwen2(),
      qwen3(),
      qwen3_5(),
      qwen3_5_multimodal(),
      qwen3_5_moe(),
      qwen3_5_moe_multimodal(),
      qwen3_moe(),
      qwen3_next(),
      stablelm(),
  };
  return table;
}

TensorNames tensor_names(const Family& family, const DecoderConfig& config) {
  return family.names == nullptr ? family.tensors : family.names(config, family.tensors);
}

const Family& family_named(std::string_view model_type, std::string_view where) {
  std::vector<std::string> names;
  for (const Family& family : families()) {
    if (family.name == model_type) return family;
    names.emplace_back(family.name);
  }
  throw_invalid("{}: model_type '{}' is not supported; supported are {}{}", where, printable(model_type, 60),
                fmt::join(names, ", "), did_you_mean(model_type.substr(0, 60), names));
}

}  // namespace gainlens::models
