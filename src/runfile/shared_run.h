#pragma once

#include "core/file_descriptor.h"
#include "runfile/process_group.h"
#include "runfile/request.h"
#include "runfile/run_folder.h"
#include "runfile/shard.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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

/// How long a process waits for another process of its group to start. Once that process has started, it waits as long
/// as that process lives.
inline constexpr std::chrono::minutes start_patience{5};

/// Called once, with a sentence, if a process has waited for a while.
using Notice = std::function<void(const std::string&)>;

/// Rank 0 of the processes that share a run. Only rank 0 holds the run folder, splits the work and combines the shards;
/// the others only add shards. The processes communicate only through files in the run folder:
/// - ranks/rank-K: locked by rank K as long as it lives (RankFile)
/// - ranks/plan.json: which rank computes what. Rank 0 writes it once every rank has started. It names the tokens of
///   all ranks, so the plan of another start is never followed.
/// - shards/: a shard of any rank appears here complete, by rename
class LeadingRank {
 public:
  /// @throws InvalidArgument  as RankFile
  LeadingRank(std::filesystem::path run, const ProcessGroup& group, std::chrono::milliseconds patience, Notice notice);
  ~LeadingRank();

  /// Waits for every rank and tells each its share.
  /// @param asked   what this process was asked for; every rank must have been asked for the same
  /// @param shares  [rank]
  /// @throws RunFailed  a rank has not started in time, or has ended
  void deal(const Request& asked, const std::vector<std::vector<ShardKey>>& shares);

  /// Shards of other ranks that have appeared since the last call.
  /// @throws RunFailed  a rank ended before it had written its shards
  std::vector<ShardKey> arrived();
  bool waits_for_shards() const { return !awaited_.empty(); }
  std::int64_t size() const { return size_; }

  /// Returns when every other rank has ended, so that rank 0 is the last and cleans up.
  void wait_for_the_others_to_end() const;

 private:
  struct Awaited {
    std::int64_t rank;
    ShardKey key;
  };
  std::vector<std::string> wait_for_tokens() const;
  bool is_alive(std::int64_t rank) const;

  std::filesystem::path run_;
  std::int64_t size_;
  std::chrono::milliseconds patience_;
  Notice notice_;
  RankFile self_;
  std::vector<std::string> tokens_;  // [rank], set by deal()
  std::vector<Awaited> awaited_;
};

/// Any other rank: computes the shards of its share and ends.
class FollowingRank {
 public:
  /// @throws InvalidArgument  as RankFile
  FollowingRank(std::filesystem::path run, const ProcessGroup& group, std::chrono::milliseconds patience,
                Notice notice);

  /// Waits until rank 0 has dealt out the work. From then on the user's HashCache holds the checksums that rank 0 has
  /// computed.
  /// @throws RunFailed        rank 0 has not started in time, or has ended
  /// @throws InvalidArgument  rank 0 was started with another number of processes
  void wait_for_share();

  /// Shards this rank has to compute.
  /// @throws InvalidArgument  `asked` is not what rank 0 was asked for (both values are named)
  std::vector<ShardKey> share(const Request& asked) const;

  /// Writes a shard; rank 0 lists it.
  /// @throws RunFailed  rank 0 has ended, so the run cannot be completed; full disk
  void commit(const ShardKey& key, const ShardResult& result);

 private:
  struct Plan {
    Request asked;
    std::vector<std::string> tokens;
    std::vector<ShardKey> share;
  };
  std::optional<Plan> read_plan() const;
  void check_leader_is_alive() const;

  std::filesystem::path run_;
  ProcessGroup group_;
  std::chrono::milliseconds patience_;
  Notice notice_;
  RankFile self_;
  std::optional<Plan> plan_;
};

/// How the chunks of a run are measured.
struct Measuring {
  std::function<ShardResult(const ShardKey&)> measure;
  std::function<double(const ShardKey&)> cost;  ///< roughly proportional to its time; used to balance the shares
  /// Called once, before the first chunk is measured, with the chunks that are missing and those that this process will
  /// measure, in that order. Not called if no chunk is missing.
  std::function<void(const std::vector<ShardKey>& missing, const std::vector<ShardKey>& own)> begin;
  std::function<void(const ShardKey&)> done;  ///< called for each finished shard, also for those of other ranks
};

/// What fill_run() has done.
struct FilledRun {
  std::int64_t chunks = 0;        ///< number of shards that were missing before
  bool run_file_written = false;  ///< as returned by RunFolder::combine()
};

/// Measures the missing chunks of a run, together with the other ranks if there are any, and combines the run.
/// @param others  null: this process alone
/// @throws RunFailed  another rank ended before it had written its shards
FilledRun fill_run(RunFolder& run, LeadingRank* others, const Measuring& measuring);

/// Measures the share of a rank other than 0.
/// @param asked  what this process was asked for
/// @returns      number of shards it has measured
/// @throws RunFailed  rank 0 has ended
std::int64_t fill_share(FollowingRank& rank, const Request& asked, const Measuring& measuring);

}  // namespace gainlens::runfile
