#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gainlens::testing {

/// The folders that a folder may include in addition to itself. The design orders the layers (docs/developer-guide.md).
struct Layer {
  std::set<std::string> below;
  bool torch = false;  ///< may include libtorch
};

/// The layers by their folder, named as in includes ("core", "kernels", "hooks", ...).
const std::map<std::string, Layer>& layers();

/// The sources of libraries without TORCH (gainlens_library) that reach a header of libtorch through their includes:
/// "library: source > header > ... > header of libtorch", sorted. The second libraries of src/bft, src/models,
/// src/recommend and src/cli, which `gainlens inspect` uses, lie in folders that may include libtorch.
std::vector<std::string> plain_libraries_with_torch(const std::filesystem::path& root);

/// All forbidden includes in the sources under `root`, as "file:line: reason", sorted.
std::vector<std::string> forbidden_includes(const std::filesystem::path& root);

}  // namespace gainlens::testing
