#pragma once

#include "support/file_bytes.h"

#include <filesystem>
#include <numeric>
#include <string>

namespace gainlens::testing {

/// A checkpoint of the golden tests: llama, vocabulary of 64 tokens, 128 positions.
inline const std::filesystem::path tiny_checkpoint = GAINLENS_SOURCE_DIR "/tests/golden/models/llama";

/// Copies it, or another checkpoint, into a folder, where a test may break it.
inline std::filesystem::path copy_checkpoint(const std::filesystem::path& folder,
                                             const std::filesystem::path& from = tiny_checkpoint) {
  const auto copy = folder / "model";
  std::filesystem::create_directories(copy);
  for (const char* name : {"config.json", "model.safetensors"}) {
    std::filesystem::copy_file(from / name, copy / name, std::filesystem::copy_options::overwrite_existing);
  }
  return copy;
}

/// A JSON array of `count` ids 2, 3, ..., 61, 2, 3, ...
inline std::filesystem::path write_ids(const std::filesystem::path& folder, int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + std::to_string(2 + i % 60);
  return write_file(folder / "ids.json", text + "]");
}

}  // namespace gainlens::testing
