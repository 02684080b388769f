#pragma once

#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <zlib.h>

#include <fstream>
#include <string>
#include <string_view>

namespace gainlens::testing {

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
