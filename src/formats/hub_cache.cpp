#include "formats/hub_cache.h"

#include "core/check.h"
#include "core/regular_file.h"
#include "formats/tensor_file.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <system_error>

namespace gainlens::formats {
namespace {

namespace fs = std::filesystem;

/// Value of a variable that is set to something.
std::optional<std::string> value_of(const Environment& environment, const char* name) {
  auto value = environment(name);
  return value && !value->empty() ? value : std::nullopt;
}

std::optional<fs::path> path_of(const Environment& environment, const char* name) {
  const auto value = value_of(environment, name);
  if (!value) return std::nullopt;
  if (*value != "~" && !value->starts_with("~/")) return *value;
  const auto home = value_of(environment, "HOME");
  return home ? fs::path(*home) / value->substr(std::min<std::size_t>(value->size(), 2)) : fs::path(*value);
}

bool is_plain_part(std::string_view part) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  const auto edge = [](char c) { return c == '-' || c == '.'; };
  return !part.empty() && std::all_of(part.begin(), part.end(), plain) && !edge(part.front()) && !edge(part.back()) &&
         part.find("..") == part.npos && part.find("--") == part.npos;
}

/// Whether a download into this cache folder was broken off.
bool has_unfinished_download(const fs::path& cache) {
  std::error_code error;
  const fs::directory_iterator blobs(cache / "blobs", error);
  return !error && std::any_of(begin(blobs), end(blobs), [](const fs::directory_entry& blob) {
    return blob.path().extension() == ".incomplete";
  });
}

bool holds_weights(const fs::path& snapshot) {
  std::error_code error;
  const fs::directory_iterator files(snapshot, error);
  return !error && std::any_of(begin(files), end(files), [](const fs::directory_entry& file) {
    return file.path().extension() == ".safetensors" || file.path().extension() == ".gguf";
  });
}

/// Whether a file of the snapshot leads to nothing.
bool has_dead_link(const fs::path& snapshot) {
  std::error_code error;
  const fs::directory_iterator files(snapshot, error);
  return !error && std::any_of(begin(files), end(files), [](const fs::directory_entry& file) {
    std::error_code ignored;
    return file.is_symlink(ignored) && !fs::exists(file.path(), ignored);
  });
}

}  // namespace

std::optional<fs::path> hub_cache_folder(const Environment& environment) {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const auto folder = path_of(environment, name)) return folder;
  }
  if (const auto home = path_of(environment, "HF_HOME")) return *home / "hub";
  if (const auto caches = path_of(environment, "XDG_CACHE_HOME")) return *caches / "huggingface" / "hub";
  if (const auto home = path_of(environment, "HOME")) return *home / ".cache" / "huggingface" / "hub";
  return std::nullopt;
}

bool is_hub_name(const std::string& text) {
  const std::size_t slash = text.find('/');
  return slash != std::string::npos && is_plain_part(std::string_view(text).substr(0, slash)) &&
         is_plain_part(std::string_view(text).substr(slash + 1));
}

fs::path locate_checkpoint(const fs::path& given, const Environment& environment) {
  const std::string name = given.string();
  std::error_code error;
  check_may_be_read(given);
  if (fs::exists(given, error) || !is_hub_name(name)) return given;
  const std::string fetch = fmt::format("gainlens downloads nothing: run `hf download {}`", name);
  const auto folder = hub_cache_folder(environment);
  // Where its first part is a folder here, the name may be a path that is misspelt.
  const bool may_be_path = fs::is_directory(given.parent_path(), error);
  if (!folder && may_be_path) return given;
  CHECK(folder, "{}: no such folder, and HOME is not set, so the cache of the Hugging Face Hub is not known", name);
  std::string own = "models--" + name;
  own.replace(own.find('/'), 1, "--");
  const fs::path cache = *folder / own;
  CHECK(fs::is_directory(cache / "snapshots", error),
        "{}: no such folder, and no such model in the cache of the Hugging Face Hub, {}; {}{}", name,
        printable(folder->string()), may_be_path ? "correct the path, or fetch the model: " : "", fetch);
  const fs::path snapshot = snapshot_of_cache(cache);
  CHECK(!has_dead_link(snapshot), "{}: a file of this snapshot is missing in blobs; {} again",
        printable(snapshot.string()), fetch);
  // A file that is still to come has no link yet. What is left of other downloads does no harm.
  CHECK(holds_weights(snapshot) || !has_unfinished_download(cache),
        "{}: no weights in this snapshot, and blobs holds a download that has not finished; {} again",
        printable(snapshot.string()), fetch);
  return snapshot;
}

}  // namespace gainlens::formats
