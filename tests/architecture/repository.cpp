#include "architecture/repository.h"

#include <algorithm>
#include <fstream>

namespace gainlens::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* tops[] = {"src",   "hooks",    "data", "analyses", "reports", "bench",
                                "tests", "examples", "docs", "scripts",  "cmake"};

bool is_skipped(const std::string& folder) {
  return folder == "corpus" || folder == "golden" || folder == "models" || folder == "images" || folder == "runs";
}

bool is_wanted(const fs::path& path, const std::vector<std::string>& endings) {
  const std::string name = path.filename().string();
  return std::any_of(endings.begin(), endings.end(), [&](const std::string& ending) { return name.ends_with(ending); });
}

}  // namespace

std::vector<SourceLine> lines_of(const fs::path& root, const std::vector<std::string>& endings) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.is_regular_file() && is_wanted(entry.path(), endings)) files.push_back(entry.path());
  }
  for (const char* top : tops) {
    if (!fs::exists(root / top)) continue;
    for (auto entry = fs::recursive_directory_iterator(root / top); entry != fs::end(entry); ++entry) {
      const std::string parent = entry->path().parent_path().filename().string();
      // tests/golden/models and tests/*/golden hold data, src/models holds code.
      if (entry->is_directory() && is_skipped(entry->path().filename().string()) &&
          !(parent == "src" || (parent == "tests" && entry->path().filename() != "corpus")))
        entry.disable_recursion_pending();
      if (entry->is_regular_file() && is_wanted(entry->path(), endings)) files.push_back(entry->path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<SourceLine> lines;
  for (const fs::path& path : files) {
    std::ifstream file(path);
    std::string text;
    for (int number = 1; std::getline(file, text); ++number)
      lines.push_back({fs::relative(path, root).string(), number, text});
  }
  return lines;
}

}  // namespace gainlens::testing
