#include "cli/given_run.h"

#include "core/error.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

bool is_weight_file(const fs::path& path) {
  return path.extension() == ".gguf" || path.extension() == ".safetensors";
}

bool is_checkpoint(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return is_weight_file(path);
  if (fs::exists(path / "run.h5", ignored) || fs::exists(path / "request.json", ignored)) return false;
  if (fs::exists(path / "config.json", ignored) || fs::is_directory(path / "snapshots", ignored)) return true;
  return std::any_of(fs::directory_iterator(path, ignored), fs::directory_iterator(),
                     [](const fs::directory_entry& entry) { return is_weight_file(entry.path()); });
}

}  // namespace

GivenRun open_given_run(const fs::path& path) {
  const std::string shown = printable(path.string());
  const std::string checkpoint = path.extension() == ".safetensors" ? printable(path.parent_path().string()) : shown;
  CHECK(!is_checkpoint(path),
        "{}: is a checkpoint, and a run is needed here; sweep it first: gainlens sweep {} --text FILE --out RUN, then "
        "give RUN",
        shown, checkpoint);
  runfile::RunProof proof = runfile::prove_run(path);  // first, before the run is read
  return {std::move(proof), runfile::RunReader::open(path)};
}

}  // namespace gainlens::cli
