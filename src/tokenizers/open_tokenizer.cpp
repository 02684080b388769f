#include "core/check.h"
#include "core/sha256.h"
#include "formats/adapter_folder.h"
#include "tokenizers/gguf_tokenizer.h"
#include "tokenizers/tokenizer.h"
#include "tokenizers/tokenizer_files.h"

namespace gainlens::tokenizers {
namespace {

namespace fs = std::filesystem;

enum class Kind { tokenizer_json, sentencepiece, gpt2 };

std::optional<Kind> kind_in(const fs::path& folder) {
  const auto there = [&](const char* name) { return is_there(folder / name); };
  if (there(tokenizer_json_file)) return Kind::tokenizer_json;
  if (there(sentencepiece_file)) return Kind::sentencepiece;
  if (there(vocabulary_file) && there(merges_file)) return Kind::gpt2;
  return std::nullopt;
}

Kind find_kind(const fs::path& folder) {
  if (const auto kind = kind_in(folder)) return *kind;
  throw_invalid(
      "{}: no tokenizer: neither {}, nor {}, nor {} with {}; put one there, or give ids with --tokens FILE.json",
      printable(folder.string()), tokenizer_json_file, sentencepiece_file, vocabulary_file, merges_file);
}

std::unique_ptr<Tokenizer> open_in_folder(const fs::path& folder) {
  switch (find_kind(folder)) {
    case Kind::tokenizer_json:
      return open_tokenizer_json(folder / tokenizer_json_file);
    case Kind::sentencepiece:
      return open_sentencepiece(folder / sentencepiece_file);
    case Kind::gpt2:
      return open_gpt2_bpe(folder / vocabulary_file, folder / merges_file);
  }
  ASSERT(false, "unknown kind of tokenizer");
}

std::vector<fs::path> files_in_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  switch (find_kind(folder)) {
    case Kind::tokenizer_json:
      files = {folder / tokenizer_json_file};
      break;
    case Kind::sentencepiece:
      files = {folder / sentencepiece_file};
      break;
    case Kind::gpt2:
      files = {folder / vocabulary_file, folder / merges_file};
      break;
  }
  if (is_there(folder / tokenizer_config_file)) files.push_back(folder / tokenizer_config_file);
  return files;
}

/// An adapter may have a tokenizer beside it; else it has that of its base.
fs::path place_of_tokenizer(const fs::path& checkpoint) {
  const auto adapter = formats::find_adapter(checkpoint);
  if (!adapter) return checkpoint;
  return kind_in(*adapter) ? *adapter : formats::adapter_base(*adapter);
}

std::string sha256_of_files(const std::vector<fs::path>& files) {
  Sha256 hash;
  for (const fs::path& file : files) hash.update(file.filename().string() + " " + sha256_file(file) + "\n");
  return hash.hex();
}

/// A checksum of each tokenizer key, with the kind, count and bytes of its value as in the file.
std::string sha256_of_tokenizer(const formats::GgufMetadata& metadata) {
  Sha256 hash;
  for (const std::string& key : metadata.keys()) {
    if (!key.starts_with("tokenizer.")) continue;
    const formats::GgufValue& value = *metadata.find(key);
    hash.update(fmt::format("{} {} {} {} {}\n", key, static_cast<int>(value.kind), static_cast<int>(value.element),
                            value.count, value.bytes.size()));
    hash.update({reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()});
  }
  return hash.hex();
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const fs::path& given) {
  const fs::path checkpoint = place_of_tokenizer(given);
  if (const auto gguf = formats::find_gguf(checkpoint)) return open_gguf_tokenizer(formats::GgufFile::open(*gguf));
  return open_in_folder(checkpoint);
}

std::vector<fs::path> tokenizer_files(const fs::path& given) {
  const fs::path checkpoint = place_of_tokenizer(given);
  if (const auto gguf = formats::find_gguf(checkpoint)) return {formats::GgufFile::open(*gguf).files().front()};
  return files_in_folder(checkpoint);
}

std::string tokenizer_sha256(const fs::path& given) {
  const fs::path checkpoint = place_of_tokenizer(given);
  if (const auto gguf = formats::find_gguf(checkpoint))
    return sha256_of_tokenizer(formats::GgufFile::open(*gguf).metadata());
  return sha256_of_files(files_in_folder(checkpoint));
}

}  // namespace gainlens::tokenizers
