#pragma once

#include "core/error.h"
#include "core/json.h"
#include "formats/tensor_file.h"
#include "support/shared_data.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gainlens::models::testing {

/// The smallest useful decoder: width 4, 2 heads of 2 dimensions that share one KV head, MLP 3, 5 tokens, 1 layer.
inline Json tiny_config(const std::string& model_type = "llama") {
  return {{"model_type", model_type}, {"num_hidden_layers", 1}, {"hidden_size", 4},
          {"intermediate_size", 3},   {"vocab_size", 5},        {"num_attention_heads", 2},
          {"num_key_value_heads", 1}, {"head_dim", 2},          {"bos_token_id", 1}};
}

/// A checkpoint in a temporary folder: a config.json and float32 tensors, which a test can change before they are
/// written.
class CheckpointFolder {
 public:
  struct Stored {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };

  explicit CheckpointFolder(Json initial) : config(std::move(initial)) {}

  /// Adds a tensor with values `first`, first + 1, ...
  void add(const std::string& name, std::vector<std::int64_t> shape, float first = 0) {
    std::size_t count = 1;
    for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
    tensors[name] = {std::move(shape), std::move(values)};
  }

  /// Adds every tensor of tiny_config(), without biases and query norms. A gate needs other `query_rows`.
  void add_tiny_tensors(std::int64_t query_rows = 4, const std::string& prefix = "model.") {
    const std::string layer = prefix + "layers.0.";
    add(prefix + "embed_tokens.weight", {5, 4});
    add(layer + "input_layernorm.weight", {4});
    add(layer + "self_attn.q_proj.weight", {query_rows, 4});
    add(layer + "self_attn.k_proj.weight", {2, 4});
    add(layer + "self_attn.v_proj.weight", {2, 4});
    add(layer + "self_attn.o_proj.weight", {4, 4});
    add(layer + "post_attention_layernorm.weight", {4});
    add(layer + "mlp.gate_proj.weight", {3, 4});
    add(layer + "mlp.up_proj.weight", {3, 4});
    add(layer + "mlp.down_proj.weight", {4, 3});
    add(prefix + "norm.weight", {4});
    add("lm_head.weight", {5, 4}, 100);
  }

  const std::filesystem::path& write() const {
    std::ofstream(path() / "config.json") << config.dump();
    std::vector<formats::TensorToWrite> list;
    for (const auto& [name, stored] : tensors) {
      list.push_back({name, formats::DType::f32, stored.shape, std::as_bytes(std::span(stored.values))});
    }
    if (!list.empty()) formats::write_tensors(path() / "model.safetensors", list);
    return path();
  }

  const std::filesystem::path& path() const { return folder_.path(); }

  Json config;
  std::map<std::string, Stored> tensors;

 private:
  gainlens::testing::TemporaryFolder folder_;
};

/// The message of the InvalidArgument that `action` throws; empty if it throws none.
template <typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

}  // namespace gainlens::models::testing
