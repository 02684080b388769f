#include "core/check.h"
#include "formats/gguf_file.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <regex>

namespace gainlens::formats {
namespace {

namespace fs = std::filesystem;

/// One file for each GGUF checkpoint in a folder. A split checkpoint is represented by its first part.
std::map<std::string, fs::path> checkpoints_in(const fs::path& folder) {
  static const std::regex part(R"((.*)-\d{5}-of-(\d{5})\.gguf)");
  std::error_code error;
  std::map<std::string, fs::path> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.ends_with(".gguf")) continue;
    std::smatch match;
    const std::string checkpoint = std::regex_match(name, match, part) ? match.str(1) + " of " + match.str(2) : name;
    const auto [known, is_new] = found.try_emplace(checkpoint, entry->path());
    if (!is_new) known->second = std::min(known->second, entry->path());
  }
  CHECK(!error, "{}: cannot list the folder ({})", printable(folder.string()), error.message());
  return found;
}

}  // namespace

std::optional<fs::path> find_gguf(const fs::path& path) {
  if (!fs::is_directory(path)) {
    if (path.extension() == ".gguf") return path;
    return std::nullopt;
  }
  const auto found = checkpoints_in(path);
  if (found.empty()) return std::nullopt;
  CHECK(found.size() == 1, "{}: {} GGUF checkpoints ({} and {}{}); give the file instead of the folder",
        printable(path.string()), found.size(), printable(found.begin()->second.filename().string()),
        printable(std::next(found.begin())->second.filename().string()), found.size() > 2 ? ", ..." : "");
  return found.begin()->second;
}

}  // namespace gainlens::formats
