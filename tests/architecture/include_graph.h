#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gainlens::testing {

/// What a folder may include besides itself. The order of the layers is the design (docs/developer-guide.md).
struct Layer {
  std::set<std::string> below;
  bool torch = false;  ///< may include libtorch
};

/// Folder as includes name it ("core", "kernels", "hooks", ...) to its layer.
const std::map<std::string, Layer>& layers();

/// Every include in the sources under `root` that the layers forbid, as "file:line: reason", sorted.
std::vector<std::string> forbidden_includes(const std::filesystem::path& root);

}  // namespace gainlens::testing
