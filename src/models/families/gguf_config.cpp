#include "models/families/gguf_config.h"

#include "core/check.h"
#include "core/nearest.h"
#include "models/families/family.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace gainlens::models {
namespace {

constexpr std::int64_t largest = std::int64_t{1} << 40;

/// Keys of an architecture that do not change what a forward pass computes.
constexpr std::array<std::string_view, 3> inert_keys = {"rope.scaling.finetuned", "vocab_size", "tensor_data_layout"};

/// Copies a size from its GGUF name to the name that the family uses.
void copy_size(GgufConfig& gguf, std::string_view from, std::string_view to) {
  if (gguf.find(from) == nullptr) return;
  gguf.config[std::string(to)] = gguf.metadata().integer(gguf.full(from), 0, largest);
}

void copy_sizes(GgufConfig& gguf, const Family& family) {
  const CommonKeys& keys = family.keys;
  copy_size(gguf, "block_count", keys.layers);
  copy_size(gguf, "embedding_length", keys.width);
  copy_size(gguf, "attention.head_count", keys.heads);
  copy_size(gguf, "context_length", keys.positions);
  if (!keys.mlp_width.empty()) copy_size(gguf, "feed_forward_length", keys.mlp_width);
  if (family.gguf.latent) return;
  if (!keys.kv_heads.empty()) copy_size(gguf, "attention.head_count_kv", keys.kv_heads);
  if (!keys.head_dim.empty()) copy_size(gguf, "attention.key_length", keys.head_dim);
}

/// Checks that values that the metadata give twice agree.
void check_twins(GgufConfig& gguf, const Family& family) {
  if (family.gguf.latent) return;
  const CommonKeys& keys = family.keys;
  const auto same = [&](std::string_view key, std::string_view other) {
    if (gguf.find(key) == nullptr || gguf.find(other) == nullptr) return;
    const auto first = gguf.metadata().integer(gguf.full(key), 0, largest),
               second = gguf.metadata().integer(gguf.full(other), 0, largest);
    CHECK(first == second, "{}: {} is {} and {} is {}; they must be equal", gguf.metadata().where(), gguf.full(key),
          first, gguf.full(other), second);
  };
  same("attention.value_length", "attention.key_length");
  // A family in which each head has its own keys. A family that reads the number of KV heads itself is excluded.
  if (keys.kv_heads.empty() && !gguf.config.contains("num_kv_heads"))
    same("attention.head_count_kv", "attention.head_count");
}

void copy_norm(GgufConfig& gguf, const CommonKeys& keys) {
  for (const std::string_view key : {"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"}) {
    if (const auto value = gguf.value(key)) gguf.config[std::string(keys.norm_epsilon)] = *value;
  }
}

Json as_json(const std::vector<float>& values) {
  Json list = Json::array();
  for (const float value : values) list.push_back(value);
  return list;
}

/// Sets rope_scaling of config.json, from its name or from tensors of factors. The trained length of the file is the
/// one that holds: it is written into both places that families read. If it is missing, it is the context length.
void copy_rope_scaling(GgufConfig& gguf, const CommonKeys& keys) {
  const std::string type = gguf.value("rope.scaling.type").value_or("none").get<std::string>();
  Json scaling = Json::object();
  const auto copy = [&](std::string_view from, const char* to) {
    if (const auto value = gguf.value(from)) scaling[to] = *value;
  };
  copy("rope.scaling.original_context_length", "original_max_position_embeddings");
  copy("rope.scaling.yarn_beta_fast", "beta_fast");
  copy("rope.scaling.yarn_beta_slow", "beta_slow");
  copy("rope.scaling.factor", "factor");
  copy("rope.scaling.attn_factor", "attention_factor");
  const auto short_factors = gguf.small_tensor("rope_factors_short.weight"),
             long_factors = gguf.small_tensor("rope_factors_long.weight");
  const auto factors = gguf.small_tensor("rope_freqs.weight");
  if (!short_factors.empty() || !long_factors.empty()) {
    scaling["rope_type"] = "longrope";
    scaling["short_factor"] = as_json(short_factors);
    scaling["long_factor"] = as_json(long_factors);
    scaling.erase("factor");
  } else if (!factors.empty()) {
    // One set of factors for every length, and no other parameters: the writer of the file applied the llama3 scaling.
    scaling = {{"rope_type", "longrope"},
               {"short_factor", as_json(factors)},
               {"long_factor", as_json(factors)},
               {"attention_factor", 1.0},
               {"original_max_position_embeddings", 2}};
  } else if (type == "none") {
    return;
  } else {
    scaling["rope_type"] = type;
  }
  const std::string original = "original_max_position_embeddings", positions(keys.positions);
  if (scaling["rope_type"] == "longrope" && !scaling.contains(original) && gguf.config.contains(positions))
    scaling[original] = gguf.config[positions];
  if (scaling.contains(original) && !keys.rope.by_window) gguf.config[original] = scaling[original];
  gguf.config["rope_scaling"] = scaling;
}

void copy_rope(GgufConfig& gguf, const Family& family) {
  const CommonKeys& keys = family.keys;
  if (const auto base = gguf.value("rope.freq_base")) gguf.config[std::string(keys.rope.base)] = *base;
  copy_rope_scaling(gguf, keys);
  if (family.gguf.latent || gguf.find("rope.dimension_count") == nullptr) return;
  const std::int64_t rotated = gguf.metadata().integer(gguf.full("rope.dimension_count"), 0, largest);
  const std::int64_t width = gguf.metadata().integer(gguf.full("embedding_length"), 1, largest);
  const std::int64_t heads = gguf.metadata().integer(gguf.full("attention.head_count"), 1, largest);
  const std::int64_t head_dim = gguf.metadata().integer(gguf.full("attention.key_length"), 1, largest, width / heads);
  CHECK(rotated == head_dim || !keys.rope.rotated.empty(),
        "{}: {} is {} and a head has {} dimensions; this family rotates whole heads", gguf.metadata().where(),
        gguf.full("rope.dimension_count"), rotated, head_dim);
  if (!keys.rope.rotated.empty())
    gguf.config[std::string(keys.rope.rotated)] = static_cast<double>(rotated) / static_cast<double>(head_dim);
}

void copy_vocabulary(const formats::GgufFile& file, GgufConfig& gguf) {
  const auto embedding = file.entries().find("token_embd.weight");
  CHECK(embedding != file.entries().end() && embedding->second.shape.size() == 2,
        "{}: no tensor 'token_embd.weight' of two dimensions; it gives the size of the vocabulary",
        file.metadata().where());
  gguf.config["vocab_size"] = embedding->second.shape[0];
  gguf.config["tie_word_embeddings"] = !gguf.has_tensor("output.weight");
  const Json& vocabulary = gguf.config["vocab_size"];
  const auto bos = file.metadata().has("tokenizer.ggml.bos_token_id")
                       ? Json(file.metadata().integer("tokenizer.ggml.bos_token_id", 0, largest))
                       : Json(nullptr);
  const bool outside = !bos.is_null() && bos >= vocabulary;
  gguf.config["bos_token_id"] = outside ? Json(nullptr) : bos;
  if (outside)
    gguf.notes.push_back(bos_outside("tokenizer.ggml.bos_token_id", bos.dump(), vocabulary.get<std::int64_t>()));
}

/// GGUF files that are no model are called what they are.
void refuse_other_files(const formats::GgufFile& file) {
  const formats::GgufMetadata& metadata = file.metadata();
  const auto text = [&](const char* key) {
    const formats::GgufValue* value = metadata.find(key);
    return value != nullptr && value->kind == formats::GgufKind::text ? metadata.text(key) : std::string();
  };
  const std::string type = text("general.type");
  const auto refuse = [&](std::string_view what) {
    throw_invalid("{}: {}; give the GGUF file of the model", metadata.where(), what);
  };
  if (type == "imatrix" || metadata.has("imatrix.datasets") || metadata.has("imatrix.chunk_count"))
    refuse("an importance matrix (imatrix), by which other programs quantise a model; it holds no weights");
  if (type == "adapter" || metadata.has("adapter.type"))
    refuse("an adapter (LoRA) in GGUF, which is not read; adapters are read in the files of PEFT");
  if (type == "mmproj" || text("general.architecture") == "clip")
    refuse("the projector of a multimodal model (mmproj), which reads images");
  if (file.entries().empty()) refuse("holds no tensors, as files with a vocabulary alone");
}

const Family& family_of(const formats::GgufFile& file, const std::string& architecture) {
  std::vector<std::string> names;
  const Family* other = nullptr;  // that no key chooses
  for (const Family& family : families()) {
    if (family.gguf.architecture.empty()) continue;
    names.emplace_back(family.gguf.architecture);
    if (family.gguf.architecture != architecture) continue;
    const std::string_view key = family.gguf.chosen_by, tensor = family.gguf.chosen_by_tensor;
    const auto is_named = [tensor](const auto& entry) { return entry.first.find(tensor) != std::string::npos; };
    if (key.empty() && tensor.empty()) {
      other = &family;
    } else if (!key.empty() ? file.metadata().has(fmt::format("{}.{}", architecture, key))
                            : std::ranges::any_of(file.entries(), is_named)) {
      return family;
    }
  }
  if (other != nullptr) return *other;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  throw_invalid("{}: general.architecture is '{}', which is not supported; supported are {}{}", file.metadata().where(),
                printable(architecture, 60), fmt::join(names, ", "), did_you_mean(architecture.substr(0, 60), names));
}

void refuse_unread(const formats::GgufFile& file, const GgufConfig& gguf, const Family& family,
                   const std::string& architecture) {
  for (const std::string& key : file.metadata().keys()) {
    if (!key.starts_with(architecture + ".")) continue;
    const std::string_view rest = std::string_view(key).substr(architecture.size() + 1);
    const auto among = [rest](const auto& list) { return std::find(list.begin(), list.end(), rest) != list.end(); };
    if (gguf.read().contains(rest) || among(inert_keys) || among(family.gguf.inert_keys)) continue;
    throw_invalid("{}: unknown metadata key '{}' may change what the model computes; this family's keys are {}",
                  file.metadata().where(), printable(key, 100), fmt::join(gguf.read(), ", "));
  }
}

}  // namespace

GgufConfig::GgufConfig(const formats::GgufFile& file, std::string architecture)
    : file_(&file), architecture_(std::move(architecture)) {}

const formats::GgufValue* GgufConfig::find(std::string_view key) {
  read_.emplace(key);
  return file_->metadata().find(full(key));
}

std::optional<Json> GgufConfig::value(std::string_view key) {
  const formats::GgufValue* found = find(key);
  if (found == nullptr) return std::nullopt;
  using Kind = formats::GgufKind;
  switch (found->kind) {
    case Kind::array:
      throw_invalid("{}: {} is an array; one value is expected", metadata().where(), full(key));
    case Kind::text:
      return metadata().text(full(key));
    case Kind::boolean:
      return metadata().boolean(full(key));
    case Kind::f32:
    case Kind::f64:
      return metadata().number(full(key));
    default:
      return metadata().integer(full(key), std::numeric_limits<std::int64_t>::min(),
                                std::numeric_limits<std::int64_t>::max());
  }
}

std::vector<float> GgufConfig::small_tensor(std::string_view name) const {
  const auto found = file_->entries().find(name);
  if (found == file_->entries().end()) return {};
  const formats::TensorEntry& entry = found->second;
  CHECK(entry.dtype == formats::DType::f32 && entry.shape.size() == 1,
        "{}: tensor '{}' is {} of {} dimensions; must be a row of F32", metadata().where(), printable(name),
        formats::name_of(entry.dtype), entry.shape.size());
  std::vector<float> values(entry.bytes.size() / sizeof(float));
  std::memcpy(values.data(), entry.bytes.data(), values.size() * sizeof(float));
  return values;
}

void GgufConfig::fill(const std::string& key, const Json& value, std::string_view why) {
  if (config.contains(key)) return;
  config[key] = value;
  remarks.push_back(fmt::format("{} = {} ({})", key, value.dump(), why));
}

GgufDescription describe_gguf(const formats::GgufFile& file) {
  refuse_other_files(file);
  const std::string architecture = file.metadata().text("general.architecture");
  const Family& family = family_of(file, architecture);
  GgufConfig gguf(file, architecture);
  gguf.config["model_type"] = family.name;
  copy_sizes(gguf, family);
  copy_norm(gguf, family.keys);
  copy_rope(gguf, family);
  copy_vocabulary(file, gguf);
  for (const auto& [from, to] : family.gguf.keys) {
    if (const auto value = gguf.value(from)) gguf.config[std::string(to)] = *value;
  }
  if (family.gguf.complete != nullptr) family.gguf.complete(gguf);
  check_twins(gguf, family);
  refuse_unread(file, gguf, family, architecture);
  return {&family, std::move(gguf.config), std::move(gguf.remarks), std::move(gguf.notes),
          std::move(gguf.inert_prefixes)};
}

void leave_out_prediction_blocks(GgufConfig& gguf) {
  if (gguf.find("nextn_predict_layers") == nullptr) return;
  const std::int64_t blocks = gguf.metadata().integer(gguf.full("block_count"), 1, largest);
  const std::int64_t beyond = gguf.metadata().integer(gguf.full("nextn_predict_layers"), 0, blocks - 1);
  gguf.config["num_hidden_layers"] = blocks - beyond;
  for (std::int64_t block = blocks - beyond; block < blocks; ++block) {
    CHECK(gguf.has_tensor(fmt::format("blk.{}.nextn.enorm.weight", block)),
          "{}: {} is {}, but block {} of {} has no tensor 'nextn.enorm.weight', which a block that predicts further "
          "tokens has",
          gguf.metadata().where(), gguf.full("nextn_predict_layers"), beyond, block, blocks);
    gguf.inert_prefixes.push_back(fmt::format("blk.{}.", block));
  }
  if (beyond > 0) {
    gguf.notes.push_back(
        fmt::format("the last {} of {} blocks predict further tokens ({}); the language model does not "
                    "run them",
                    beyond, blocks, gguf.full("nextn_predict_layers")));
  }
}

bool copy_window_pattern(GgufConfig& gguf) {
  constexpr std::string_view key = "attention.sliding_window_pattern";
  const formats::GgufValue* pattern = gguf.find(key);
  if (pattern == nullptr) return false;
  if (pattern->kind != formats::GgufKind::array) {
    gguf.config["sliding_window_pattern"] = gguf.metadata().integer(gguf.full(key), 1, 4096);
    return true;
  }
  const auto windows = gguf.metadata().booleans(gguf.full(key)).value();
  for (const bool windowed : windows)
    gguf.config["layer_types"].push_back(windowed ? "sliding_attention" : "full_attention");
  return true;
}

TensorNames gguf_names() {
  TensorNames names;
  names.prefix = "";
  names.embedding = "token_embd";
  names.position_embedding = "position_embd";
  names.embedding_norm = "token_embd_norm";
  names.final_norm = "output_norm";
  names.head = "output";
  names.layer = "blk.{}.";
  names.attention_norm = "attn_norm";
  names.query = "attn_q";
  names.key = "attn_k";
  names.value = "attn_v";
  names.query_norm = "attn_q_norm";
  names.key_norm = "attn_k_norm";
  names.sink_logit = "attn_sinks.weight";
  names.output = "attn_output";
  names.attention_post_norm = "post_attention_norm";
  names.mlp_norm = "ffn_norm";
  names.mlp_gate = "ffn_gate";
  names.mlp_up = "ffn_up";
  names.mlp_down = "ffn_down";
  names.mlp_post_norm = "post_ffw_norm";
  names.router = "ffn_gate_inp";
  names.expert_gate = "ffn_gate_exps";
  names.expert_up = "ffn_up_exps";
  names.expert_down = "ffn_down_exps";
  names.shared_gate = "ffn_gate_shexp";
  names.shared_up = "ffn_up_shexp";
  names.shared_down = "ffn_down_shexp";
  names.shared_score = "ffn_gate_inp_shexp";
  return names;
}

TensorNames gguf_joined_names() {
  TensorNames names = gguf_names();
  names.query_key_value = "attn_qkv";
  return names;
}

TensorNames gguf_paired_names() {
  TensorNames names = gguf_names();
  names.rotary_pairs = true;
  return names;
}

}  // namespace gainlens::models
