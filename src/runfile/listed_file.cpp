#include "runfile/listed_file.h"

#include "core/error.h"

#include <fmt/format.h>

namespace gainlens::runfile {

namespace fs = std::filesystem;

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool names_file_below(const std::string& name) {
  const fs::path path = name;
  return !name.empty() && name.find('\0') == std::string::npos && path.is_relative() && path.has_filename() &&
         path.lexically_normal().string() == name && *path.begin() != ".." && name != ".";
}

std::string link_fault(const fs::path& folder, const std::string& name) {
  const fs::path file = folder / name;
  if (fs::canonical(file) == fs::canonical(folder) / name) return {};
  return fmt::format("{}: is a link, or lies behind one; put the file itself there", printable(file.string()));
}

}  // namespace gainlens::runfile
