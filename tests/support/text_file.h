#pragma once

#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
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

/// The path by which a process reads one of its pipes, which holds this content and is closed for writing.
inline std::filesystem::path pipe_with(std::string_view content) {
  int ends[2];
  if (::pipe(ends) != 0 || ::write(ends[1], content.data(), content.size()) != std::ssize(content)) std::abort();
  ::close(ends[1]);
  return "/dev/fd/" + std::to_string(ends[0]);
}

}  // namespace gainlens::testing
