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
  std::function<double(const ShardKey&)> cost;  ///< roughly proportional to its time: what balanced shares go by
  /// Told what is missing, and what of it `measure` will be asked for, in that order; before anything is measured, and
  /// not where nothing is.
  std::function<void(const std::vector<ShardKey>& missing, const std::vector<ShardKey>& own)> begin;
  std::function<void(const ShardKey&)> done;  ///< told of each shard that is there, whoever measured it
};

/// Measures what is missing in a run, with the other ranks of its group where there are any, and combines it.
/// @param others  null: this process alone
/// @returns       shards that were not there before
/// @throws RunFailed  another rank has ended before its shards were there
std::int64_t fill_run(RunFolder& run, LeadingRank* others, const Measuring& measuring);

/// Measures the share of a rank other than 0.
/// @param asked  what this process was asked for
/// @returns      shards it has measured
/// @throws RunFailed  rank 0 has ended
std::int64_t fill_share(FollowingRank& rank, const Request& asked, const Measuring& measuring);

}  // namespace gainlens::runfile
