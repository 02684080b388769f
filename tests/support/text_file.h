#pragma once

#include "support/shared_data.h"

#include <zlib.h>

#include <fstream>
#include <string>
#include <string_view>

namespace gainlens::testing {

/// Writes a file and returns its path.
inline std::filesystem::path write_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

/// The content, compressed as one gzip member.
inline std::string gzipped(std::string_view content) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "member.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  std::ifstream packed(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(packed), {}};
}

}  // namespace gainlens::testing
