#include "core/check.h"
#include "core/json.h"
#include "core/nearest.h"
#include "formats/importance_matrix.h"
#include "formats/tensor_file.h"

#include <algorithm>
#include <optional>
#include <system_error>

namespace gainlens::formats {
namespace {

constexpr const char* config_name = "config.json";
constexpr std::uintmax_t max_reference_bytes = 4096;

bool is_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

std::vector<std::string> folders_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& item : std::filesystem::directory_iterator(folder, error)) {
    if (is_folder(item.path())) names.push_back(item.path().filename().string());
  }
  CHECK(!error, "{}: cannot be listed: {}", printable(folder.string()), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

/// The commit that refs/main names, or nothing where the cache has no such reference.
std::optional<std::string> main_commit(const std::filesystem::path& cache) {
  const auto reference = cache / "refs" / "main";
  if (!is_file(reference)) return std::nullopt;
  std::string commit = read_text_file(reference, max_reference_bytes);
  commit.erase(commit.find_last_not_of(" \t\r\n") + 1);
  const bool plain = !commit.empty() && commit.find('/') == std::string::npos && commit != "." && commit != ".." &&
                     commit.find('\0') == std::string::npos;
  CHECK(plain, "{}: '{}' is not the name of a snapshot; fetch the model again", printable(reference.string()),
        printable(commit));
  return commit;
}

}  // namespace

std::filesystem::path snapshot_of_cache(const std::filesystem::path& cache) {
  const auto snapshots = cache / "snapshots";
  const std::string where = printable(cache.string());
  const auto names = folders_in(snapshots);
  CHECK(!names.empty(), "{}: a cache folder without snapshots; fetch the model again", where);
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + printable(name);
  if (const auto commit = main_commit(cache)) {
    CHECK(std::find(names.begin(), names.end(), *commit) != names.end(),
          "{}: refs/main names snapshot '{}', which is not there; there are: {}", where, printable(*commit), all);
    return snapshots / *commit;
  }
  CHECK(names.size() == 1, "{}: {} snapshots and no refs/main; give the folder of one: {}",
        printable(snapshots.string()), names.size(), all);
  return snapshots / names.front();
}

std::filesystem::path resolve_checkpoint_folder(const std::filesystem::path& path) {
  const std::string where = printable(path.string());
  std::error_code error;
  CHECK(std::filesystem::exists(path, error), "{}: no such folder", where);
  CHECK(!is_importance_matrix(path),
        "{}: an importance matrix (imatrix), by which other programs quantise a model; it holds no weights; give the "
        "model",
        where);
  CHECK(is_folder(path), "{}: a file; give the folder that holds {}", where, config_name);
  if (is_file(path / config_name)) return path;
  CHECK(is_folder(path / "snapshots"),
        "{}: no {}; give a folder that holds one, or a Hugging Face cache folder (models--organisation--name)", where,
        config_name);
  const auto snapshot = snapshot_of_cache(path);
  CHECK(is_file(snapshot / config_name), "{}: no {} in this snapshot; fetch the model again",
        printable(snapshot.string()), config_name);
  return snapshot;
}

}  // namespace gainlens::formats
