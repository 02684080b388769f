#pragma once

#include "core/json.h"
#include "runfile/hash_cache.h"
#include "runfile/request.h"
#include "runfile/shard.h"

#include <filesystem>
#include <memory>
#include <vector>

namespace gainlens::runfile {

/// What every process that writes into a run folder does first: makes it where it is not there.
/// @throws InvalidArgument  it holds something else, or cannot be written to
void prepare_run_folder(const std::filesystem::path& folder);

/// A run being written. Holds the folder's lock while it lives; every step is atomic, so that a kill at any moment
/// loses at most the shard being computed. Layout: run-file.md.
class RunFolder {
 public:
  /// Creates the folder, or resumes (same request) or extends (more lengths or samples) the run in it.
  /// @param log  command line, paths, times, versions: kept in log.json, never compared
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
  /// Keys of the request given to open_or_resume (not of the whole union: a request already covered ends at once)
  /// without a shard, shortest first. Every shard in the folder has been proven against its checksum on opening.
  std::vector<ShardKey> missing() const;
  /// Writes one immutable shard and its manifest line. @throws RunFailed  disk full
  void commit(const ShardKey& key, const ShardResult& result);
  /// Takes in a shard that another process of the same run has written (shared_run.h): proves that it is whole and of
  /// this run, and lists it.
  /// @throws InvalidArgument  it is not
  void adopt(const ShardKey& key);
  /// Writes run.h5 from all shards of the union that are there (NaN and /complete 0 for the others); does nothing where
  /// run.h5 already holds exactly these. Puts the manifest in order. @throws RunFailed disk full; the shards are kept
  void combine();
  /// Keeps the checksums of files in log.json for the next start.
  void remember(const HashCache& cache);

 private:
  struct State;
  explicit RunFolder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gainlens::runfile
