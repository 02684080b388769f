#pragma once

#include "core/json.h"
#include "formats/gguf_file.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::models {

struct Family;
struct TensorNames;

/// Builds the config.json of a model from the metadata of its GGUF file.
class GgufConfig {
 public:
  GgufConfig(const formats::GgufFile& file, std::string architecture);

  /// A metadata value of the architecture; null if it is absent. Marks the key as read.
  /// @param key  without the name of the architecture
  const formats::GgufValue* find(std::string_view key);
  /// The same as JSON: an integer, number, boolean or text.
  /// @throws InvalidArgument  an array
  std::optional<Json> value(std::string_view key);
  /// The full name of a key: "gemma3.block_count".
  std::string full(std::string_view key) const { return architecture_ + "." + std::string(key); }
  const formats::GgufMetadata& metadata() const { return file_->metadata(); }
  bool has_tensor(std::string_view name) const { return file_->entries().contains(name); }
  /// The float32 numbers of a small tensor; empty if it is absent.
  /// @throws InvalidArgument  the tensor has another dtype or more than one dimension
  std::vector<float> small_tensor(std::string_view name) const;

  /// Sets a key that the file leaves out, and adds a remark for the user: "rope_local_base_freq = 10000.0 (why)".
  void fill(const std::string& key, const Json& value, std::string_view why);

  Json config = Json::object();
  std::vector<std::string> remarks;
  std::vector<std::string> notes;           ///< other things that the user should know
  std::vector<std::string> inert_prefixes;  ///< as GgufDescription
  const std::set<std::string, std::less<>>& read() const { return read_; }

 private:
  const formats::GgufFile* file_;
  std::string architecture_;
  std::set<std::string, std::less<>> read_;
};

/// The description of the model of a GGUF file, with the keys of config.json.
struct GgufDescription {
  const Family* family = nullptr;
  Json config;
  std::vector<std::string> remarks;         ///< for the user: the keys that were filled in
  std::vector<std::string> notes;           ///< other things that the user should know about the file
  std::vector<std::string> inert_prefixes;  ///< how the names of tensors begin that the model does not use
};

/// @throws InvalidArgument  no family has this architecture (the message lists those that are supported); a metadata
///     key of the architecture is unknown, of the wrong kind, or contradicts another
GgufDescription describe_gguf(const formats::GgufFile& file);

/// Copies which layers have a window: a flag for each layer, or the number of layers from one without a window to the
/// next. Returns false if the file does not say it.
bool copy_window_pattern(GgufConfig& gguf);

/// Leaves out the last blocks, which predict several tokens, if `nextn_predict_layers` says that there are some. A
/// language model does not run them.
/// @throws InvalidArgument  one of them has no tensor of such a block
void leave_out_prediction_blocks(GgufConfig& gguf);

/// The tensor names that all GGUF files share.
TensorNames gguf_names();
/// The same, with queries, keys and values joined in one tensor, one after the other.
TensorNames gguf_joined_names();
/// The same, with the rows of queries and keys in rotary pairs: files of llama and mistral.
TensorNames gguf_paired_names();

}  // namespace gainlens::models
