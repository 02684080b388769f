#pragma once

#include "runfile/process_group.h"
#include "runfile/rank_file.h"
#include "runfile/request.h"
#include "runfile/shard.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::runfile {

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

}  // namespace gainlens::runfile
