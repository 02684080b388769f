#include "formats/importance_matrix.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string_view>

namespace gainlens::formats {

bool is_importance_matrix(const std::filesystem::path& path) {
  constexpr std::int32_t max_entries = 1 << 20, longest_name = 1 << 10;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::array<char, 16> start{};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  std::int32_t entries = 0, length = 0;
  std::memcpy(&entries, start.data(), sizeof(entries));
  std::memcpy(&length, start.data() + sizeof(entries), sizeof(length));
  const std::string_view name(start.data() + 8, 8);
  return entries > 0 && entries < max_entries && length > 0 && length < longest_name &&
         (name.starts_with("blk.") || name.starts_with("output.") || name.starts_with("token_em"));
}

}  // namespace gainlens::formats
