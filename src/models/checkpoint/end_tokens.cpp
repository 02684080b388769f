#include "models/checkpoint/end_tokens.h"

#include "core/check.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace gainlens::models {
namespace {

constexpr std::string_view key = "eos_token_id";

EndTokens made(std::vector<std::int64_t> ids, std::int64_t vocabulary, std::string source) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  EndTokens found;
  for (const std::int64_t id : ids) (0 <= id && id < vocabulary ? found.ids : found.outside).push_back(id);
  if (!found.ids.empty()) found.source = std::move(source);
  return found;
}

/// @returns  no id if the object has no such key, or null
std::vector<std::int64_t> ids_in(const Json& object, const std::string& where) {
  std::vector<std::int64_t> ids;
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || found->is_null()) return ids;
  const Json list = found->is_array() ? *found : Json::array({*found});
  for (const Json& id : list) {
    CHECK(id.is_number_integer(), "{}: '{}' is {}; must be an id, or a list of ids", where, key,
          printable(found->dump(), 60));
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

EndTokens gguf_end_tokens(const formats::GgufMetadata& metadata, std::int64_t vocabulary) {
  std::vector<std::int64_t> ids;
  std::string source;
  for (const char* name : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    if (!metadata.has(name)) continue;
    ids.push_back(metadata.integer(name, 0, std::numeric_limits<std::uint32_t>::max()));
    if (ids.back() < vocabulary) source += (source.empty() ? "" : " and ") + std::string(name);
  }
  return made(std::move(ids), vocabulary, std::move(source));
}

EndTokens folder_end_tokens(const std::filesystem::path& folder, std::int64_t vocabulary) {
  constexpr std::uintmax_t max_bytes = 16u << 20;
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::filesystem::path file = folder / name;
    if (!std::filesystem::exists(file)) continue;
    const std::string where = printable(file.string());
    const Json document = read_json_file(file, max_bytes);
    std::vector<std::int64_t> ids = ids_in(document, where);
    if (ids.empty() && document.is_object() && document.contains("text_config"))
      ids = ids_in(document.at("text_config"), where);
    if (!ids.empty()) return made(std::move(ids), vocabulary, fmt::format("{} of {}", key, name));
  }
  return {};
}

}  // namespace

EndTokens end_tokens(const CheckpointSource& source) {
  const std::int64_t vocabulary = source.config.vocabulary;
  if (const auto* gguf = std::get_if<formats::GgufFile>(&source.tensors))
    return gguf_end_tokens(gguf->metadata(), vocabulary);
  return folder_end_tokens(source.base, vocabulary);
}

}  // namespace gainlens::models
