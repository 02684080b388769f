#pragma once

#include "runfile/run_folder.h"
#include "runfile/shared_run.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace gainlens::runfile {

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
