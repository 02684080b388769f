#include "experiment/proven_result.h"

#include "core/check.h"
#include "experiment/result_file.h"
#include "runfile/kept_files.h"

#include <vector>

namespace gainlens::experiment {
namespace {

namespace fs = std::filesystem;

/// Whether it names a file of the folder itself, and of no other one.
bool is_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('\0') == std::string::npos &&
         fs::path(name).filename() == name;
}

}  // namespace

StoredResult prove_result(const fs::path& folder, const std::string& label, std::uint64_t seed) {
  const fs::path file = folder / result_name;
  StoredResult stored = load_result(file, label, seed);
  if (stored.kept.is_null()) return stored;
  const std::string repair =
      fmt::format("delete {} and repeat the command, which trains this seed again", printable(folder.string()));
  CHECK(stored.kept.is_object(), "{}: its checksums are no list of files; {}", printable(file.string()), repair);
  std::vector<const char*> names;
  for (const auto& [name, checksum] : stored.kept.items()) {
    CHECK(is_file_name(name), "{}: keeps the checksum of '{}', which is no file of its folder; {}",
          printable(file.string()), printable(name, 60), repair);
    names.push_back(name.c_str());
  }
  runfile::prove_kept(stored.kept, {folder, names}, {"this training", result_name, repair});
  return stored;
}

}  // namespace gainlens::experiment
