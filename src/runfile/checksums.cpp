#include "runfile/checksums.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/file_descriptor.h"
#include "core/sha256.h"
#include "core/utf8.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

/// The files of a checkpoint: a list that lacks one of those that are there proves nothing of it.
constexpr std::string_view always_listed[] = {"config.json", "model.safetensors", "tokenizer.model"};

constexpr std::size_t digest_length = 64, max_list_bytes = std::size_t{1} << 20;

/// The checksum and the name in a line of a list.
std::pair<std::string, std::string> entry_of(std::string_view line, const std::string& where) {
  const bool has_digest = is_sha256(line.substr(0, digest_length));
  const std::string_view rest = has_digest ? line.substr(digest_length) : std::string_view();
  const std::string name(rest.starts_with("  ") || rest.starts_with(" *") ? rest.substr(2) : std::string_view());
  CHECK(names_file_below(name),
        "{}: '{}' is no checksum of a file in its folder; repeat the command that wrote the folder, or delete the list",
        where, printable(line, 100));
  return {std::string(line.substr(0, digest_length)), name};
}

std::vector<std::pair<std::string, std::string>> read_list(const fs::path& list) {
  const std::string text = read_text_file(list, max_list_bytes), where = printable(list.string());
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    entries.push_back(entry_of(rest.substr(0, end), where));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  CHECK(!entries.empty(), "{}: lists no file; repeat the command that wrote the folder, or delete the list", where);
  return entries;
}

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

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// Whether a change after `now` would show in the file's state. One that was changed within the last two seconds may be
/// changed again within the same tick of the file system's clock, and its times would not show it.
bool is_settled(const FileState& state, std::time_t now) {
  return state.changed + 2 < now;
}

}  // namespace

std::string faults_in_words(std::span<const FileFault> faults) {
  if (faults.empty()) return {};
  std::vector<std::string> others;
  for (const FileFault& fault : faults.subspan(1)) {
    std::string name = printable(fault.file.string());
    if (fault.file != faults.front().file && std::ranges::find(others, name) == others.end())
      others.push_back(std::move(name));
  }
  if (others.empty()) return faults.front().message;
  return fmt::format("{}. And {}: {}", faults.front().message, counted(others.size(), "other file"),
                     fmt::join(others, ", "));
}

void write_checksum_list(const fs::path& folder, std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text += sha256_file(folder / name) + "  " + name + "\n";
  write_file_atomically(folder / checksum_list_name, text);
}

ComparedFolder compare_with_list(const fs::path& folder, const std::string& repair, Listed which) {
  const fs::path list = folder / checksum_list_name;
  ComparedFolder found;
  found.has_list = fs::exists(list);
  if (!found.has_list) return found;
  const auto entries = read_list(list);
  for (const std::string_view name : always_listed) {
    if (!fs::exists(folder / name) || std::ranges::any_of(entries, [&](const auto& one) { return one.second == name; }))
      continue;
    found.faults.push_back(
        {folder / name, fmt::format("{}: is not listed in {}; put the right list back, or {}",
                                    printable((folder / name).string()), checksum_list_name, repair)});
  }
  for (const auto& [listed, name] : entries) {
    if (which == Listed::here && fs::path(name).has_parent_path()) continue;
    const fs::path file = folder / name;
    look_at(&found.faults, file, [&, &digest = listed, &below = name] {
      CHECK(fs::is_regular_file(file), "{}: is missing, and {} lists it; put it back, or {}", printable(file.string()),
            checksum_list_name, repair);
      check_no_link(folder, below);
      check_digest(file, digest, fmt::format(", and {} says", checksum_list_name),
                   fmt::format("the file has changed since the training wrote it; put it back, or {}", repair));
    });
  }
  return found;
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool names_file_below(const std::string& name) {
  const fs::path path = name;
  return !name.empty() && name.find('\0') == std::string::npos && path.is_relative() && path.has_filename() &&
         path.lexically_normal().string() == name && *path.begin() != ".." && name != ".";
}

void check_no_link(const fs::path& folder, const std::string& name) {
  CHECK(fs::canonical(folder / name) == fs::canonical(folder) / name,
        "{}: is a link, or lies behind one; put the file itself there", printable((folder / name).string()));
}

void check_digest(const fs::path& file, const std::string& listed, std::string_view says, std::string_view why) {
  const std::string digest = sha256_once(file);
  CHECK(digest == listed, "{}: its sha256 is {}{} {}: {}", printable(file.string()), digest, says, printable(listed),
        why);
}

Json checksums_of(const KeptFiles& files) {
  Json checksums = Json::object();
  for (const char* name : files.names) checksums[name] = sha256_file(files.folder / name);
  return checksums;
}

void prove_kept(const Json& checksums, const KeptFiles& files, const KeptFilesWords& words) {
  for (const char* name : files.names) {
    const std::filesystem::path path = files.folder / name;
    CHECK(std::filesystem::exists(path), "{}: {} of {} is missing; put it back, or {}",
          printable(files.folder.string()), name, words.owner, words.repair);
    if (checksums.is_null()) continue;
    const std::string digest = sha256_once(path);
    CHECK(checksums.is_object() && checksums.value(name, Json()) == digest,
          "{}: its sha256 is {}, and {} says {}: the file has changed since the training wrote it; put it back, or {}",
          printable(path.string()), digest, words.list,
          printable((checksums.is_object() ? checksums.value(name, Json()) : checksums).dump()), words.repair);
  }
}

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
  const std::time_t now = clock_();
  if (folder_ && is_settled(before, now) && !first_invalid_utf8(path)) {
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

FileState state_of(const std::filesystem::path& file) {
  struct stat status {};
  CHECK(::stat(file.c_str(), &status) == 0, "{}: cannot be read: {}", printable(file.string()), system_reason());
  return {{{"size", std::int64_t{status.st_size}},
           {"mtime_ns", nanoseconds(status.st_mtim)},
           {"ctime_ns", nanoseconds(status.st_ctim)},
           {"inode", std::uint64_t{status.st_ino}},
           {"device", std::uint64_t{status.st_dev}}},
          std::max(status.st_mtim.tv_sec, status.st_ctim.tv_sec)};
}

std::string sha256_once(const fs::path& file, std::time_t now) {
  static std::mutex guard;
  static std::map<fs::path, std::pair<FileState, std::string>> known;
  std::error_code error;
  if (!fs::exists(file, error)) return sha256_file(file);  // which says why it cannot be read
  const FileState state = state_of(file);
  const fs::path path = fs::absolute(file).lexically_normal();
  {
    const std::lock_guard lock(guard);
    const auto found = known.find(path);
    if (found != known.end() && found->second.first == state) return found->second.second;
  }
  std::string digest = sha256_file(file);
  if (is_settled(state, now) && state_of(file) == state) {
    const std::lock_guard lock(guard);
    known.insert_or_assign(path, std::pair(state, digest));
  }
  return digest;
}

WatchedFiles::WatchedFiles(const std::vector<std::filesystem::path>& files) {
  for (const std::filesystem::path& file : files) files_.emplace_back(file, state_of(file));
}

void WatchedFiles::check() const {
  for (const auto& [file, state] : files_) {
    CHECK(state_of(file) == state,
          "{}: was changed while it was used, so the last numbers are not stored; put it back, or repeat the command "
          "with another output folder",
          printable(file.string()));
  }
}

}  // namespace gainlens::runfile
