#include "architecture/include_graph.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <utility>

namespace gainlens::testing {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> torch_prefixes = {"ATen/", "torch/", "c10/"};

/// The layer of a source file: "src/kernels/x.cpp" -> "kernels", "hooks/x.h" -> "hooks".
std::string layer_of(const fs::path& relative) {
  auto part = relative.begin();
  if (*part == "src") ++part;
  return part->string();
}

bool is_torch_header(const std::string& target) {
  return std::any_of(torch_prefixes.begin(), torch_prefixes.end(),
                     [&](const auto& prefix) { return target.starts_with(prefix); });
}

const std::regex& include_line() {
  static const std::regex pattern(R"re(^\s*#\s*include\s+(["<])([^">]+)[">])re");
  return pattern;
}

/// The sources of each library without TORCH in a CMakeLists.txt, by the library's name.
std::map<std::string, std::vector<std::string>> plain_libraries(const fs::path& cmake_file) {
  std::map<std::string, std::vector<std::string>> libraries;
  std::ifstream file(cmake_file);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  static const std::regex call(R"(gainlens_library\(([^)]*)\))"), word(R"(\S+)");
  for (std::sregex_iterator found(text.begin(), text.end(), call), end; found != end; ++found) {
    const std::string arguments = (*found)[1];
    std::vector<std::string> words;
    for (std::sregex_iterator at(arguments.begin(), arguments.end(), word); at != end; ++at) words.push_back(at->str());
    if (words.size() < 2 || words[1] != "SOURCES") continue;
    for (std::size_t i = 2; i < words.size() && words[i].ends_with(".cpp"); ++i)
      libraries[words[0]].push_back(words[i]);
  }
  return libraries;
}

/// Walks the includes of a file, depth first.
class IncludeWalk {
 public:
  explicit IncludeWalk(fs::path root) : root_(std::move(root)) {}

  /// The way from a file to a header of libtorch, as "a.cpp > b.h > ATen/ATen.h"; empty if there is none.
  std::string way_to_torch(const fs::path& relative) {
    // It includes one header of libtorch, if it is available, to remove a macro; see the comment there.
    if (relative == "src/core/check.h" || !seen_.insert(relative.string()).second) return {};
    std::ifstream file(root_ / relative);
    std::string line;
    while (std::getline(file, line)) {
      std::smatch match;
      if (!std::regex_search(line, match, include_line())) continue;
      const std::string target = match[2];
      if (is_torch_header(target)) return relative.string() + " > " + target;
      for (const fs::path& place : {fs::path("src") / target, fs::path(target)}) {
        if (!fs::exists(root_ / place)) continue;
        if (const std::string rest = way_to_torch(place); !rest.empty()) return relative.string() + " > " + rest;
        break;
      }
    }
    return {};
  }

 private:
  fs::path root_;
  std::set<std::string> seen_;
};

bool is_source(const fs::path& path) {
  return path.extension() == ".h" || path.extension() == ".cpp" || path.extension() == ".cu" ||
         path.extension() == ".cuh";
}

void check_file(const fs::path& root, const fs::path& relative, std::vector<std::string>& found) {
  const std::string own = layer_of(relative);
  const auto own_layer = layers().find(own);
  std::ifstream file(root / relative);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    std::smatch match;
    if (!std::regex_search(line, match, include_line())) continue;
    const std::string target = match[2];
    const auto say = [&](const std::string& reason) {
      found.push_back(relative.string() + ":" + std::to_string(number) + ": " + reason);
    };
    if (own_layer == layers().end()) {
      say("folder '" + own + "' has no place among the layers");
      return;
    }
    const std::string top = target.substr(0, target.find('/'));
    if (layers().contains(top) && top != own && !own_layer->second.below.contains(top))
      say("'" + own + "' must not include '" + target + "'");
    // core/check.h includes one header of libtorch, if it is available, to remove a macro; see the comment there.
    if (is_torch_header(target) && !own_layer->second.torch && relative != "src/core/check.h")
      say("'" + own + "' must not include libtorch ('" + target + "')");
  }
}

}  // namespace

const std::map<std::string, Layer>& layers() {
  static const std::map<std::string, Layer> table = [] {
    std::map<std::string, Layer> made;
    made["core"] = {{}, false};
    for (const char* name : {"formats", "runfile"}) made[name] = {{"core"}, false};
    made["tokenizers"] = {{"core", "formats"}, false};
    made["kernels"] = {{"core"}, true};
    made["data"] = {{"core", "formats", "runfile", "tokenizers"}, false};
    made["hooks"] = {{"core", "formats", "runfile", "kernels"}, true};
    made["bft"] = {{"core", "formats", "runfile", "kernels", "hooks"}, true};
    const std::set<std::string> lower = {"core", "formats", "runfile", "tokenizers", "kernels", "data", "hooks", "bft"};
    const auto with = [](std::set<std::string> base, const std::set<std::string>& more) {
      base.insert(more.begin(), more.end());
      return base;
    };
    made["models"] = {lower, true};
    for (const char* name : {"sweep", "training", "generation"}) made[name] = {with(lower, {"models"}), true};
    made["interventions"] = {with(lower, {"models", "sweep"}), true};
    made["depth"] = {with(lower, {"models", "sweep"}), true};
    made["look"] = {with(lower, {"models", "sweep", "interventions"}), true};
    made["experiment"] = {{"core", "formats", "runfile", "training"}, true};
    made["language"] = {with(lower, {"models", "sweep", "training", "experiment", "generation"}), true};
    made["recommend"] = {with(lower, {"models", "training", "experiment"}), true};
    // Of bft these two may use what its library without libtorch has: no other header of bft compiles.
    made["analyses"] = {{"core", "runfile", "bft"}, false};
    made["reports"] = {{"core", "runfile", "bft", "analyses"}, false};
    made["cli"] = {with(lower, {"models", "sweep", "training", "interventions", "depth", "look", "generation",
                                "experiment", "language", "recommend", "analyses", "reports"}),
                   true};
    return made;
  }();
  return table;
}

std::vector<std::string> plain_libraries_with_torch(const fs::path& root) {
  std::vector<std::string> found;
  for (const char* top : {"src", "hooks", "analyses", "reports"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (entry.path().filename() != "CMakeLists.txt") continue;
      for (const auto& [library, sources] : plain_libraries(entry.path())) {
        for (const std::string& source : sources) {
          const fs::path relative = fs::relative(entry.path().parent_path() / source, root);
          if (const std::string way = IncludeWalk(root).way_to_torch(relative); !way.empty())
            found.push_back(library + ": " + way);
        }
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> forbidden_includes(const fs::path& root) {
  std::vector<std::string> found;
  for (const char* top : {"src", "hooks", "analyses", "reports"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (entry.is_regular_file() && is_source(entry.path())) check_file(root, fs::relative(entry.path(), root), found);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace gainlens::testing
