#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace gainlens::runfile {

/// What has been proven about the files of a run before its numbers are read.
struct RunProof {
  std::size_t shards = 0;         ///< shards that have the checksum in manifest.jsonl
  std::string unproven;           ///< a sentence on what could not be proven; empty if everything was
  bool run_file_compared = true;  ///< run.h5 has a checksum, in log.json or beside it; also where there is no run.h5
  bool depth_compared = true;     ///< likewise depth.json
};

/// What is said of a run.h5 that was compared with no checksum.
inline constexpr std::string_view no_checksum = "run.h5 has no checksum beside it; what it holds is not proven.";
/// The same of any file.
std::string no_checksum_beside(std::string_view name);

/// Proves a run folder without changing it: no process is writing it, every shard in manifest.jsonl has its checksum,
/// and run.h5 has the checksum in log.json. A run.h5 that is given as a file, and depth.json,
/// are compared with `<file>.sha256` beside them, where there is one; `unproven` says what was not compared.
/// @param path  a run folder or a run.h5
/// @throws InvalidArgument  another process is writing the run; a file is missing or differs from its checksum (both
///     are named)
RunProof prove_run(const std::filesystem::path& path);

/// `<file>.sha256`: the checksum beside a file, as `sha256sum` writes it.
std::filesystem::path checksum_file_of(const std::filesystem::path& file);
/// Compares the file with the checksum beside it.
/// @returns whether there is one
/// @throws InvalidArgument  they differ (both are named), or what lies there is no checksum
bool prove_by_neighbour(const std::filesystem::path& file);
/// @throws RunFailed  the disk is full
void write_checksum_beside(const std::filesystem::path& file);
/// Writes a file, and before it the checksum beside it. An old file goes first, so it has its checksum at any moment.
/// @throws RunFailed  the disk is full
void write_with_checksum(const std::filesystem::path& file, std::string_view content);

}  // namespace gainlens::runfile
