#include "runfile/hash_cache.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/file_descriptor.h"
#include "core/sha256.h"
#include "core/utf8.h"
#include "runfile/file_state.h"
#include "runfile/listed_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t max_bytes = 32u << 20;  // of checksums.json; 1,000 of the longest paths need less
constexpr std::chrono::seconds lock_patience{10};

bool is_entry(const Json& entry) {
  return entry.is_object() && entry.value("sha256", Json()).is_string() &&
         is_sha256(entry["sha256"].get_ref<const std::string&>()) && entry.value("file", Json()).is_object() &&
         entry.value("hashed_at", Json()).is_number_integer();
}

/// Whether others than this user cannot have written what lies in the folder.
bool is_private(const fs::path& folder) {
  struct stat status {};
  return ::stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

fs::path entries_file(const fs::path& folder) {
  return folder / "checksums.json";
}

/// Path -> entry; empty if there are none or if they cannot be trusted. Leaves out malformed entries.
Json read_entries(const fs::path& folder) {
  Json entries = Json::object();
  if (!is_private(folder)) return entries;
  try {
    const Json stored = read_json_file(entries_file(folder), max_bytes);
    if (!stored.is_object()) return entries;
    for (const auto& [path, entry] : stored.items()) {
      if (is_entry(entry)) entries[path] = entry;
    }
  } catch (const InvalidArgument&) {  // no such file, or damaged: it is written anew
  }
  return entries;
}

void drop_oldest(Json& entries) {
  while (entries.size() > HashCache::max_files) {
    auto oldest = entries.begin();
    for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
      if (entry->at("hashed_at") < oldest->at("hashed_at")) oldest = entry;
    }
    entries.erase(oldest);
  }
}

/// A locked file, or none if there are no locks here, or if another process keeps it locked.
std::optional<FileDescriptor> locked(const fs::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return std::nullopt;
  // Not without limit: a process that was stopped while it holds the lock must not stop all others.
  const auto end = std::chrono::steady_clock::now() + lock_patience;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || std::chrono::steady_clock::now() > end) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return file;
}

std::optional<fs::path> absolute_path(const std::optional<std::string>& value) {
  if (!value || !fs::path(*value).is_absolute()) return std::nullopt;
  return *value;
}

}  // namespace

HashCache HashCache::for_user(const Environment& environment) {
  if (const auto caches = absolute_path(environment("XDG_CACHE_HOME"))) return HashCache(*caches / "gainlens");
  if (const auto home = absolute_path(environment("HOME"))) return HashCache(*home / ".cache" / "gainlens");
  return HashCache(std::nullopt);
}

HashCache::HashCache(std::optional<fs::path> folder, Clock clock)
    : folder_(std::move(folder)), clock_(std::move(clock)) {}

std::string HashCache::sha256(const fs::path& file) const {
  const std::string path = fs::absolute(file).lexically_normal().string();
  const FileState before = state_of(file);
  if (folder_) {
    const Json entries = read_entries(*folder_);
    const auto known = entries.find(path);
    if (known != entries.end() && known->at("file") == before.signature) return known->at("sha256");
  }
  const std::string digest = sha256_file(file);
  CHECK(state_of(file) == before, "{}: changed while it was read; repeat when it is complete",
        printable(file.string()));
  // A file that was changed within the last two seconds may be changed again within the same tick of the file system's
  // clock, and its times would not show it.
  const std::time_t now = clock_();
  if (folder_ && before.changed + 2 < now && !first_invalid_utf8(path)) {
    store(path, {{"file", before.signature}, {"sha256", digest}, {"hashed_at", std::int64_t{now}}});
  }
  return digest;
}

std::map<std::string, std::string> HashCache::sha256_by_name(const std::vector<fs::path>& files) const {
  std::map<std::string, std::string> sums;
  for (const fs::path& file : files) sums[file.filename().string()] = sha256(file);
  return sums;
}

void HashCache::store(const std::string& path, Json entry) const {
  // Private folders, as the XDG specification wants them. The parents of the user's cache folder are not made.
  ::mkdir(folder_->parent_path().c_str(), 0700);
  ::mkdir(folder_->c_str(), 0700);
  if (!is_private(*folder_)) return;
  const auto lock = locked(*folder_ / "lock");
  if (!lock) return;
  Json entries = read_entries(*folder_);
  entries[path] = std::move(entry);
  drop_oldest(entries);
  try {
    write_file_atomically(entries_file(*folder_), entries.dump(1) + "\n");
  } catch (const InvalidArgument&) {  // not writable
  } catch (const RunFailed&) {        // disk full
  }
}

}  // namespace gainlens::runfile
