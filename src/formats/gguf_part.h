#pragma once

#include "formats/gguf_file.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace gainlens::formats {

/// What one GGUF file holds, whether it is the whole checkpoint or a part of it.
struct GgufPart {
  std::filesystem::path path;
  std::uint32_t version = 0;
  GgufMetadata metadata;
  std::map<std::string, TensorEntry, std::less<>> entries;
};

/// Maps the file and checks its whole header. Layout, in order: "GGUF", version (u32), number of tensors and of keys
/// (u64 each), the keys with their values, the tensors' names, sizes, types and places, padding, the tensors' data.
/// Source: the GGUF specification, https://github.com/ggml-org/ggml, "GGUF".
/// @throws InvalidArgument  as GgufFile::open, except for faults of other parts
GgufPart read_gguf_part(const std::filesystem::path& path);

}  // namespace gainlens::formats
