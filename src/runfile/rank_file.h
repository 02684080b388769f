#pragma once

#include "core/file_descriptor.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace gainlens::runfile {

/// The folder in a run folder where the processes of a group find each other. It exists only while they work.
inline constexpr const char* ranks_folder_name = "ranks";

/// Tells other processes that this process is rank K of the run and alive: the file ranks/rank-K, locked (flock) until
/// the object is destroyed or the process ends, also by a crash. It holds a token that no other start has, so files of
/// a crashed start are never taken for files of this start.
class RankFile {
 public:
  /// @param patience  how long to wait for an earlier holder of this rank to end
  /// @throws InvalidArgument  another process (its token is shown) is this rank, or the folder cannot be written to or
  ///     locked
  /// @throws RunFailed        full disk; the system cannot say whether a process of this rank lives
  RankFile(const std::filesystem::path& run, std::int64_t rank, std::chrono::milliseconds patience);
  RankFile(const RankFile&) = delete;
  RankFile& operator=(const RankFile&) = delete;
  ~RankFile();

  /// "PROCESS@HOST-RANDOM".
  const std::string& token() const { return token_; }

 private:
  bool publish();

  std::filesystem::path path_;
  std::string token_;
  FileDescriptor file_;
};

/// The token of a rank whose process is alive; empty if it has ended or has not started yet.
std::optional<std::string> living_rank(const std::filesystem::path& run, std::int64_t rank);

/// Removes the files of ranks that are no longer alive, and the folder `ranks` if it is empty then.
void remove_dead_ranks(const std::filesystem::path& run);

}  // namespace gainlens::runfile
