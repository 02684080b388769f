#pragma once

#include "core/json.h"
#include "runfile/request.h"
#include "runfile/run_proof.h"
#include "runfile/run_reader.h"
#include "runfile/shard.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::runfile {

/// Refuses a folder that is used for something else. One with request.json is a run; files of a start that was killed
/// before it wrote request.json are accepted.
/// @throws InvalidArgument  it holds something else
void check_empty_or_run(const std::filesystem::path& folder);

/// Makes the run folder if it does not exist. Every process that writes into a run folder calls this first.
/// @throws InvalidArgument  it holds something else, or cannot be written to
void prepare_run_folder(const std::filesystem::path& folder);

/// A run that is being written. The object holds the folder's lock. Every step is atomic: killing the process at any
/// moment loses at most the shard that is being computed. Layout: docs/run-file.md.
class RunFolder {
 public:
  /// Creates the folder, or resumes (same request) or extends (more lengths or samples) the run in it.
  /// @param log  command line, paths, times, versions: kept in log.json, never compared. Its key "gainlens" is the
  ///             program's version, which run.h5 names. "model", "text" and "tokens" name the inputs in messages.
  /// @throws InvalidArgument  the folder holds something else or another request (both values named), is locked by
  ///                          another process, or cannot be written to; a shard has changed since it was written
  /// @throws RunFailed        disk full
  static RunFolder open_or_resume(const std::filesystem::path& folder, const Request& request,
                                  const Json& log = Json::object());
  ~RunFolder();
  RunFolder(RunFolder&&) noexcept;
  RunFolder& operator=(RunFolder&&) noexcept;

  /// The stored request: the union of all that were asked for.
  const Request& request() const;
  /// The request given to open_or_resume.
  const Request& asked() const;
  /// The chunks without a shard, shortest first. Only chunks of the request given to open_or_resume count, not those of
  /// the whole union, so the list is empty for a request that is already covered. On opening, every shard in the folder
  /// was compared with its checksum.
  std::vector<ShardKey> missing() const;
  /// Writes one immutable shard and its manifest line. @throws RunFailed  disk full
  void commit(const ShardKey& key, const ShardResult& result);
  /// Adds a shard that another process of the same run has written (shared_run.h): proves that it is complete and
  /// belongs to this run, and lists it in the manifest.
  /// @throws InvalidArgument  it is incomplete or belongs to another run
  void adopt(const ShardKey& key);
  /// Sorts the manifest and writes run.h5 from all shards of the union. Missing chunks are NaN, with /complete 0. A
  /// run.h5 that already holds exactly these shards, in the present edition (run_file.h), is not written again.
  /// @returns whether run.h5 was written
  /// @throws RunFailed  disk full; the shards are kept
  bool combine();

 private:
  struct State;
  explicit RunFolder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The finished chunks of a sweep that was stopped before it wrote run.h5, as a run.
struct StoppedSweep {
  RunProof proof;  ///< of the shards; `unproven` says how many chunks are there, and how to go on
  RunReader reader;
};

/// Makes a run.h5 from the shards in a temporary folder, and reads it. The run folder stays as it is.
/// @returns  nothing: no sweep that was stopped, or none of its chunks is there
/// @throws InvalidArgument  as prove_run() and RunReader::open()
/// @throws RunFailed        no room for temporary files
std::optional<StoppedSweep> open_stopped_sweep(const std::filesystem::path& folder);

/// log.json: facts to keep that do not determine the numbers of a run. It is never compared. Deleting it costs only
/// time.
class RunLog {
 public:
  /// An empty log if there is no file.
  /// @throws InvalidArgument  it is damaged
  static RunLog read(const std::filesystem::path& folder);
  /// @throws RunFailed  disk full
  void write() const;

  /// Adds the caller's facts about this start (command line, paths, versions), with the time.
  void add_start(const Json& start);
  /// The starts of the run so far, oldest first.
  const Json& starts() const { return content_.at("starts"); }
  /// The version of gainlens of the last start; empty if the log does not say it.
  std::string last_version() const;
  /// The checksum of what run.h5 was made from, and the checksum of run.h5 itself; null if it has not been made.
  const Json& combined() const { return content_.at("combined"); }
  void set_combined(const Json& combined) { content_["combined"] = combined; }

 private:
  std::filesystem::path path_;
  Json content_ = {{"starts", Json::array()}, {"combined", nullptr}};
};

}  // namespace gainlens::runfile
