#include "experiment/proven_result.h"

#include "core/check.h"
#include "experiment/result_file.h"
#include "runfile/kept_files.h"

#include <utility>
#include <vector>

namespace gainlens::experiment {
namespace {

namespace fs = std::filesystem;

/// Whether it names a file of the folder itself, and of no other one.
bool is_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('\0') == std::string::npos &&
         fs::path(name).filename() == name;
}

/// The files whose checksums the result of a training keeps.
class KeptByResult {
 public:
  /// @throws InvalidArgument  its list of checksums is none
  KeptByResult(fs::path folder, const Json& checksums) : folder_(std::move(folder)), checksums_(checksums) {
    if (checksums_.is_null()) return;
    const std::string file = printable((folder_ / result_name).string());
    CHECK(checksums_.is_object(), "{}: its checksums are no list of files; {}", file, repair());
    for (const auto& [name, checksum] : checksums_.items()) {
      CHECK(is_file_name(name), "{}: keeps the checksum of '{}', which is no file of its folder; {}", file,
            printable(name, 60), repair());
      names_.push_back(name);
    }
  }
  const std::vector<std::string>& names() const { return names_; }
  /// @throws InvalidArgument  the file is missing or has changed
  void prove(const std::string& name) const {
    const char* const names[] = {name.c_str()};
    runfile::prove_kept(checksums_, {folder_, names}, {"this training", result_name, repair()});
  }

 private:
  std::string repair() const {
    return fmt::format("delete {} and repeat the command, which trains this seed again", printable(folder_.string()));
  }
  fs::path folder_;
  const Json& checksums_;
  std::vector<std::string> names_;
};

}  // namespace

StoredResult prove_result(const fs::path& folder, const std::string& label, std::uint64_t seed) {
  StoredResult stored = load_result(folder / result_name, label, seed);
  const KeptByResult kept(folder, stored.kept);
  for (const std::string& name : kept.names()) kept.prove(name);
  return stored;
}

std::optional<StoredResult> examine_result(const fs::path& folder, const std::string& label, std::uint64_t seed,
                                           std::vector<runfile::FileFault>& faults) {
  const fs::path file = folder / result_name;
  try {
    StoredResult stored = load_result(file, label, seed);
    const KeptByResult kept(folder, stored.kept);
    for (const std::string& name : kept.names()) {
      try {
        kept.prove(name);
      } catch (const InvalidArgument& error) {
        faults.push_back({folder / name, error.what()});
      }
    }
    return stored;
  } catch (const InvalidArgument& error) {
    faults.push_back({file, error.what()});
    return std::nullopt;
  }
}

void prove_checkpoint_files(const fs::path& folder) {
  if (!fs::is_directory(folder)) return;
  const fs::path result = folder / result_name;
  if (fs::exists(result)) {
    const StoredResult stored = load_result(result);
    const KeptByResult kept(folder, stored.kept);
    for (const std::string& name : kept.names())
      if (fs::path(name).extension() != ".jsonl") kept.prove(name);  // the answers are no part of the model
    return;
  }
  const auto found = runfile::compare_with_list(folder, "train again in another folder", runfile::Listed::here);
  if (!found.faults.empty()) throw_invalid("{}", found.faults.front().message);
}

}  // namespace gainlens::experiment
