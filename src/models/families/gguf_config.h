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

/// The config.json of a model while it is put together from the metadata of its GGUF file.
class GgufConfig {
 public:
  GgufConfig(const formats::GgufFile& file, std::string architecture);

  /// A metadata value of the architecture, `key` without its name; null where there is none. Marks it as read.
  const formats::GgufValue* find(std::string_view key);
  /// The same with a type: integers, numbers, booleans and texts become JSON.
  /// @throws InvalidArgument  an array
  std::optional<Json> value(std::string_view key);
  /// The full name: "gemma3.block_count".
  std::string full(std::string_view key) const { return architecture_ + "." + std::string(key); }
  const formats::GgufMetadata& metadata() const { return file_->metadata(); }
  bool has_tensor(std::string_view name) const { return file_->entries().contains(name); }
  /// The float32 numbers of a small tensor; empty where there is none.
  /// @throws InvalidArgument  another dtype
  std::vector<float> small_tensor(std::string_view name) const;

  /// Sets a key that the file leaves out, and notes it for people: "rope_local_base_freq = 10000.0 (why)".
  void fill(const std::string& key, const Json& value, std::string_view why);

  Json config = Json::object();
  std::vector<std::string> remarks;
  const std::set<std::string, std::less<>>& read() const { return read_; }

 private:
  const formats::GgufFile* file_;
  std::string architecture_;
  std::set<std::string, std::less<>> read_;
};

/// What a GGUF file says of its model, in the words of config.json.
struct GgufDescription {
  const Family* family = nullptr;
  Json config;
  std::vector<std::string> remarks;  ///< what was filled in, for people
};

/// @throws InvalidArgument  an architecture without a family (names those there are); a metadata key of the
/// architecture that is unknown, of the wrong kind, or contradicts another
GgufDescription describe_gguf(const formats::GgufFile& file);

/// The tensor names that all GGUF files share.
TensorNames gguf_names();
/// The same where queries, keys and values are one tensor, one after the other.
TensorNames gguf_fused_names();
/// The same where the rows of queries and keys lie in rotary pairs: files of llama and mistral.
TensorNames gguf_paired_names();

}  // namespace gainlens::models
