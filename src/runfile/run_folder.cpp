#include "runfile/run_folder.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/scratch_folder.h"
#include "core/sha256.h"
#include "runfile/folder_lock.h"
#include "runfile/run_file.h"
#include "runfile/shard_file.h"
#include "runfile/shared_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

/// Whether a file in a run folder is one of ours that was being written when a process was killed.
bool is_temporary(const std::string& name) {
  constexpr std::array<std::string_view, 4> files{"request.json", "manifest.jsonl", "log.json", run_file_name};
  constexpr std::string_view probe = ".writable.", filled_in = "XXXXXX";  // of ensure_writable_folder()
  if (name.starts_with(probe) && name.size() == probe.size() + filled_in.size()) return true;
  return std::ranges::any_of(files, [&](std::string_view file) { return name == std::string(file) + ".tmp"; });
}

/// The same for the folder `shards`: "T512-S0.h5.tmp", or of another rank "T512-S0.h5.<token>.tmp".
bool is_temporary_shard(const std::string& name) {
  constexpr std::string_view extension = ".h5.";
  const std::size_t end = name.find(extension);
  return end != std::string::npos && name.ends_with(".tmp") &&
         parse_shard_file_name(name.substr(0, end + extension.size() - 1)).has_value();
}

/// Removes what a killed process was writing. Nothing refers to it. Files of other names are not ours.
void remove_temporaries(const fs::path& folder) {
  const auto remove_from = [](const fs::path& place, bool (*is_ours)(const std::string&)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(place)) {
      if (is_ours(entry.path().filename().string())) fs::remove(entry.path());
    }
  };
  remove_from(folder, is_temporary);
  remove_from(folder / "shards", is_temporary_shard);
}

/// The names of the files that a start was called with, from its entry in log.json.
InputNames names_in(const Json& start) {
  const auto text_of = [&start](const char* key) {
    const Json value = start.is_object() ? start.value(key, Json()) : Json();
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  const std::string text = text_of("text");
  return {text_of("model"), text.empty() ? text_of("tokens") : text};
}

/// Those of the last start of the run; empty if log.json does not say them.
InputNames names_of_last_start(const fs::path& folder) {
  const Json starts = RunLog::read(folder).starts();
  return starts.empty() ? InputNames{} : names_in(starts.back());
}

/// Extends the stored request to cover the asked one, writes it if it changed, and returns it.
/// @param log  of this start
Request store_request(const fs::path& folder, const Request& asked, const Json& log) {
  const fs::path path = folder / "request.json";
  Request stored = asked;
  if (fs::exists(path)) {
    const Request found = Request::from_json(read_json_file(path), path.string());
    CHECK(found.version == asked.version,
          "{}: made by another version of gainlens (statistics version {}, this one computes {}); sweep into a new "
          "folder, or read it with report",
          printable(folder.string()), found.version, asked.version);
    const std::string difference = found.difference(asked, names_of_last_start(folder), names_in(log));
    CHECK(difference.empty(),
          "{}: holds the run of another request: {}; give another output folder, or repeat the stored request",
          printable(folder.string()), difference);
    stored = found.united(asked);
    if (found.covers(asked)) return stored;
  }
  write_file_atomically(path, stored.to_json().dump(2) + "\n");
  return stored;
}

}  // namespace

struct RunFolder::State {
  fs::path folder;
  FolderLock lock;
  Request asked;
  Request stored;
  Manifest manifest;
  RunLog log;
  std::map<ShardKey, fs::path> shards;  // those in the folder, all proven

  fs::path path_of_missing(const ShardKey& key) const {
    ASSERT(stored.holds(key) && !shards.contains(key), "shard of length {} sample {} is not missing", key.length,
           key.sample);
    return folder / "shards" / shard_file_name(key);
  }
  /// Adds a shard that is in its place.
  void list(const ShardKey& key, const std::string& digest) {
    manifest.append(key, digest);
    shards.emplace(key, folder / "shards" / shard_file_name(key));
  }

  /// Checks every shard in the folder. It must have the checksum in the manifest, or be a complete shard of this run,
  /// which is then listed.
  void check_shards() {
    check_listed(manifest.digests(), stored, folder / "manifest.jsonl");
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / "shards")) {
      if (const auto key = parse_shard_file_name(entry.path().filename().string())) shards.emplace(*key, entry.path());
    }
    for (const auto& [key, path] : shards) {
      CHECK(stored.holds(key), "{}: is no shard of this run's request; move it out of the folder", path.string());
      const std::string digest = sha256_file(path);
      const auto listed = manifest.digests().find(key);
      if (listed == manifest.digests().end()) {
        prove_unlisted(key, path);
        manifest.append(key, digest);
      } else {
        CHECK(listed->second == digest,
              "{}: its sha256 is {} and manifest.jsonl says {}: the file has changed since it was written; delete it "
              "and repeat the command, which computes it again",
              path.string(), digest, listed->second);
      }
    }
  }

  void prove_unlisted(const ShardKey& key, const fs::path& path) const {
    try {
      open_shard(path, stored, key);
    } catch (const hdf5::Error& error) {
      throw_invalid(
          "{}: is not in manifest.jsonl and is no shard of this run: {}; delete it and repeat the command, which "
          "computes it again",
          path.string(), error.what());
    }
  }

  /// The checksum of everything that determines the numbers of run.h5 and what the file says about them. The version of
  /// the program is left out: a new version alone does not make the file anew.
  std::string content_digest() const {
    Sha256 hash;
    hash.update(
        fmt::format("{} {} {}\n{}\n", run_format, run_format_version, run_file_edition, stored.to_json().dump()));
    for (const auto& [key, path] : shards)
      hash.update(fmt::format("{} {} {}\n", key.length, key.sample, manifest.digests().at(key)));
    return hash.hex();
  }
};

void check_empty_or_run(const fs::path& folder) {
  if (!fs::is_directory(folder) || fs::exists(folder / "request.json")) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool ours =
        name == "lock" || name == ranks_folder_name || name == "request.json.tmp" || name.starts_with(".writable.");
    // Checked again: rank 0 of a group may be making the run at the same time.
    CHECK(ours || fs::exists(folder / "request.json"),
          "{}: is not empty and not a run (it holds '{}' and no request.json); give a new or empty folder",
          printable(folder.string()), printable(name));
  }
}

void prepare_run_folder(const fs::path& folder) {
  check_empty_or_run(folder);
  ensure_writable_folder(folder);
}

RunFolder RunFolder::open_or_resume(const fs::path& folder, const Request& request, const Json& log) {
  request.validate("request");
  prepare_run_folder(folder);
  FolderLock lock(folder);
  Request stored = store_request(folder, request, log);
  make_folder(folder / "shards");
  remove_temporaries(folder);
  remove_dead_ranks(folder);
  auto state = std::make_unique<State>(State{folder,
                                             std::move(lock),
                                             request,
                                             std::move(stored),
                                             Manifest(folder / "manifest.jsonl"),
                                             RunLog::read(folder),
                                             {}});
  state->check_shards();
  state->log.add_start(log);
  state->log.write();
  return RunFolder(std::move(state));
}

RunFolder::RunFolder(std::unique_ptr<State> state) : state_(std::move(state)) {}
RunFolder::~RunFolder() = default;
RunFolder::RunFolder(RunFolder&&) noexcept = default;
RunFolder& RunFolder::operator=(RunFolder&&) noexcept = default;

const Request& RunFolder::request() const {
  return state_->stored;
}

const Request& RunFolder::asked() const {
  return state_->asked;
}

std::vector<ShardKey> RunFolder::missing() const {
  std::vector<ShardKey> result;
  for (const std::int64_t length : state_->asked.lengths) {
    for (std::int64_t sample = 0; sample < state_->asked.samples; ++sample) {
      if (!state_->shards.contains({length, sample})) result.push_back({length, sample});
    }
  }
  return result;
}

void RunFolder::commit(const ShardKey& key, const ShardResult& result) {
  const fs::path path = state_->path_of_missing(key);
  TemporaryFile temporary(path);
  write_shard(temporary.path(), state_->stored, key, result);
  const std::string digest = sha256_file(temporary.path());
  temporary.publish();
  state_->list(key, digest);
}

void RunFolder::adopt(const ShardKey& key) {
  const fs::path path = state_->path_of_missing(key);
  state_->prove_unlisted(key, path);
  state_->list(key, sha256_file(path));
}

bool RunFolder::combine() {
  state_->manifest.put_in_order();
  const fs::path path = state_->folder / run_file_name;
  const std::string content = state_->content_digest();
  const Json& known = state_->log.combined();
  if (known.is_object() && known.value("content", Json()) == content && fs::exists(path) &&
      known.value("sha256", Json()) == sha256_file(path)) {
    return false;
  }
  TemporaryFile temporary(path);
  const std::string version = state_->log.last_version();
  write_run_file(temporary.path(), state_->stored, state_->shards, version);
  prove_run_file(temporary.path(), state_->stored, state_->shards, version);
  const std::string digest = sha256_file(temporary.path());
  temporary.publish();
  state_->log.set_combined({{"content", content}, {"sha256", digest}});
  state_->log.write();
  return true;
}

std::optional<StoppedSweep> open_stopped_sweep(const fs::path& folder) {
  const fs::path request_file = folder / request_file_name, list = folder / "manifest.jsonl";
  if (fs::exists(folder / run_file_name) || !fs::exists(request_file) || !fs::exists(list)) return std::nullopt;
  RunProof proof = prove_run(folder);
  if (proof.shards == 0) return std::nullopt;
  const Request request = Request::from_json(read_json_file(request_file), printable(request_file.string()));
  std::map<ShardKey, fs::path> shards;
  for (const auto& [key, digest] : read_manifest(list)) shards.emplace(key, folder / "shards" / shard_file_name(key));
  const ScratchFolder scratch(fs::temp_directory_path(), "gainlens-stopped-sweep-");
  const fs::path file = scratch.path() / run_file_name;
  write_run_file(file, request, shards, RunLog::read(folder).last_version());
  RunReader reader = RunReader::open(file, folder / run_file_name);  // which keeps it open
  proof.unproven = fmt::format(
      "The sweep was stopped: {} of {} are there. Repeat its gainlens sweep command with the same --out, which "
      "measures the rest.",
      shards.size(), counted(std::ssize(request.lengths) * request.samples, "chunk"));
  return StoppedSweep{std::move(proof), std::move(reader)};
}

RunLog RunLog::read(const std::filesystem::path& folder) {
  RunLog log;
  log.path_ = folder / "log.json";
  if (!std::filesystem::exists(log.path_)) return log;
  constexpr const char* remedy = "delete it: it holds no results";
  Json content;
  try {
    content = read_json_file(log.path_);
  } catch (const InvalidArgument& error) {
    throw_invalid("{}; {}", error.what(), remedy);
  }
  CHECK(
      content.is_object() && content.contains("starts") && content["starts"].is_array() && content.contains("combined"),
      "{}: is not the log of a run; {}", log.path_.string(), remedy);
  content.erase("file_hashes");  // checksums of weights in logs of older versions; now in HashCache
  log.content_ = std::move(content);
  return log;
}

void RunLog::write() const {
  // Paths need not be UTF-8, JSON must be.
  write_file_atomically(path_, content_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void RunLog::add_start(const Json& start) {
  Json entry = start;
  entry["time"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  content_["starts"].push_back(std::move(entry));
}

std::string RunLog::last_version() const {
  if (starts().empty() || !starts().back().is_object()) return {};
  const Json version = starts().back().value("gainlens", Json());
  return version.is_string() ? version.get<std::string>() : std::string();
}

}  // namespace gainlens::runfile
