#pragma once

#include "core/json.h"
#include "core/random.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace gainlens::testing {

/// Sentences of a small grammar, one per line: enough for a vocabulary of a few hundred pieces.
inline std::string made_up_text(int lines, std::uint64_t seed = 1) {
  static const std::vector<std::string> subjects = {"the river", "a careful keeper", "the old bridge", "every winter",
                                                    "one small boat"};
  static const std::vector<std::string> verbs = {"carries", "watches", "remembers", "crosses", "outlasts"};
  static const std::vector<std::string> objects = {"the harbour", "many stones", "its own weight", "a narrow road",
                                                   "the morning light"};
  Random random(seed);
  const auto one_of = [&random](const std::vector<std::string>& words) { return words[random.below(words.size())]; };
  std::string text;
  for (int i = 0; i < lines; ++i) text += one_of(subjects) + " " + one_of(verbs) + " " + one_of(objects) + ".\n";
  return text;
}

/// A recipe for a gated decoder of one layer, which is trained within a second.
inline Json small_recipe() {
  return {{"model",
           {{"model_type", "qwen3"},
            {"hidden_size", 16},
            {"intermediate_size", 24},
            {"num_hidden_layers", 1},
            {"num_attention_heads", 2},
            {"num_key_value_heads", 1},
            {"head_dim", 8},
            {"max_position_embeddings", 32},
            {"tie_word_embeddings", true},
            {"headwise_attn_output_gate", true}}},
          {"tokenizer", {{"vocabulary", 320}}},
          {"stages", {{{"context", 16}, {"steps", 30}}, {{"context", 32}, {"steps", 10}}}},
          {"tokens_per_step", 128},
          {"tokens_at_once", 64},
          {"learning_rate", 0.01},
          {"warmup_steps", 4},
          {"validation_fraction", 0.1},
          {"evaluate_every", 10},
          {"save_every", 5}};
}

inline std::filesystem::path write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace gainlens::testing
