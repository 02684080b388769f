#pragma once

#include "core/json.h"
#include "formats/gguf_file.h"
#include "formats/scaled_values.h"
#include "formats/tensor_file.h"
#include "models/checkpoint/lora_adapter.h"
#include "models/checkpoint/read_config.h"
#include "models/decoder/decoder_config.h"
#include "models/families/family.h"
#include "models/families/tensor_names.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gainlens::models {

using TensorEntries = std::map<std::string, formats::TensorEntry, std::less<>>;

/// A checkpoint on disk. Its configuration has been read. Its tensors are still in the mapped files.
struct CheckpointSource {
  std::filesystem::path path;  ///< the folder of config.json, or the GGUF file; of an adapter, its folder
  std::filesystem::path base;  ///< the same, but for an adapter: that of the model that it changes
  /// The files that determine the numbers: config.json and the weight files with their index; or the parts of the GGUF.
  /// Those of an adapter come first.
  std::vector<std::filesystem::path> files;
  const Family* family = nullptr;
  DecoderConfig config;
  TensorNames names;                 ///< as this checkpoint spells them
  std::vector<std::string> remarks;  ///< keys that the files leave out, with the values that were filled in
  std::vector<std::string> notes;    ///< other things that the user should know about the files
  /// How the names of further tensors begin that the decoder does not use: those of whole blocks of a GGUF file.
  std::vector<std::string> inert_prefixes;
  std::variant<formats::TensorDirectory, formats::GgufFile> tensors;
  /// Weights that are stored as numbers and scales, by the names that unquantised checkpoints give them.
  std::map<std::string, formats::ScaledTensor, std::less<>> scaled;
  std::optional<LoraAdapter> adapter;  ///< is added to the weights when they are read

  const TensorEntries& entries() const;
  bool is_gguf() const { return std::holds_alternative<formats::GgufFile>(tensors); }
  std::string where() const;  ///< for messages
};

/// @param path  a folder in Hugging Face layout, a Hugging Face cache folder, a GGUF file, a folder with a GGUF file,
/// or
///     the folder of an adapter (formats::find_adapter), which is opened with its base
/// @param ignored  as in read_decoder_config
/// @throws InvalidArgument  as read_decoder_config, formats::TensorDirectory::open, formats::GgufFile::open,
///     formats::adapter_base and open_lora_adapter
CheckpointSource open_checkpoint(const std::filesystem::path& path, const IgnoredKeys& ignored = {});

}  // namespace gainlens::models
