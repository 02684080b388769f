#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace gainlens::testing {

/// The pretrained model that scripts/fetch-gemma3 fetches. It lies in the folder GAINLENS_MODELS, or in .models/ of the
/// project if this variable is not set. Empty if the model is absent: a test then skips with `gemma_is_missing`.
inline std::optional<std::filesystem::path> gemma_model() {
  const char* folder = std::getenv("GAINLENS_MODELS");
  const std::filesystem::path path =
      std::filesystem::path(folder != nullptr ? folder : GAINLENS_SOURCE_DIR "/.models") / "gemma-3-270m-q4_k_m.gguf";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  return path;
}

inline constexpr const char* gemma_is_missing = "SKIPPED: no gemma-3-270m-q4_k_m.gguf; run scripts/fetch-gemma3";

}  // namespace gainlens::testing
