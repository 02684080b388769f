#include "runfile/hash_cache.h"

#include "core/check.h"
#include "core/file_descriptor.h"
#include "core/sha256.h"
#include "runfile/run_log.h"

#include <sys/stat.h>

#include <ctime>

namespace gainlens::runfile {
namespace {

constexpr std::int64_t nanoseconds = 1'000'000'000;

Json signature(const std::filesystem::path& file) {
  struct stat status {};
  CHECK(::stat(file.c_str(), &status) == 0, "{}: cannot be read: {}", printable(file.string()), system_reason());
  return {{"size", std::int64_t{status.st_size}},
          {"mtime_ns", std::int64_t{status.st_mtim.tv_sec} * nanoseconds + status.st_mtim.tv_nsec},
          {"inode", std::uint64_t{status.st_ino}}};
}

/// Whether the file was last written more than about two seconds ago. A newer file may be written again within the same
/// clock tick, and its modification time would not show it.
bool settled(const Json& file_signature) {
  return file_signature.at("mtime_ns").get<std::int64_t>() / nanoseconds + 2 < std::int64_t{std::time(nullptr)};
}

bool is_entry(const Json& entry) {
  return entry.is_object() && entry.contains("sha256") && entry["sha256"].is_string() &&
         entry["sha256"].get_ref<const std::string&>().size() == 64;
}

}  // namespace

HashCache HashCache::of_run(const std::filesystem::path& folder) {
  return from_json(RunLog::read(folder).hashes());
}

HashCache HashCache::from_json(const Json& json) {
  HashCache cache;
  for (const auto& [path, entry] : json.items()) {
    if (is_entry(entry)) cache.entries_[path] = entry;
  }
  return cache;
}

Json HashCache::to_json() const {
  return entries_;
}

std::string HashCache::sha256(const std::filesystem::path& file) {
  const std::string path = std::filesystem::absolute(file).lexically_normal().string();
  const Json before = signature(file);
  if (const auto known = entries_.find(path); known != entries_.end()) {
    Json stored = *known;
    stored.erase("sha256");
    if (stored == before) return known->at("sha256");
  }
  const std::string digest = sha256_file(file);
  CHECK(signature(file) == before, "{}: changed while it was read; repeat when it is complete",
        printable(file.string()));
  entries_.erase(path);
  if (settled(before)) {
    entries_[path] = before;
    entries_[path]["sha256"] = digest;
  }
  return digest;
}

}  // namespace gainlens::runfile
