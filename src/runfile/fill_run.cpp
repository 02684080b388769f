#include "runfile/fill_run.h"

#include "runfile/work_shares.h"

#include <chrono>
#include <thread>

namespace gainlens::runfile {
namespace {

/// Splits the missing shards among `size` processes.
std::vector<std::vector<ShardKey>> shares_of(const std::vector<ShardKey>& missing, std::int64_t size,
                                             const Measuring& measuring) {
  std::vector<double> costs;
  costs.reserve(missing.size());
  for (const ShardKey& key : missing) costs.push_back(measuring.cost(key));
  std::vector<std::vector<ShardKey>> shares;
  for (const auto& share : balanced_shares(costs, size)) {
    auto& keys = shares.emplace_back();
    for (const std::size_t index : share) keys.push_back(missing[index]);
  }
  return shares;
}

void adopt_arrived(RunFolder& run, LeadingRank& others, const Measuring& measuring) {
  for (const ShardKey& key : others.arrived()) {
    run.adopt(key);
    measuring.done(key);
  }
}

}  // namespace

FilledRun fill_run(RunFolder& run, LeadingRank* others, const Measuring& measuring) {
  const std::vector<ShardKey> missing = run.missing();
  std::vector<ShardKey> own = missing;
  if (others != nullptr) {
    const auto shares = shares_of(missing, others->size(), measuring);
    others->deal(run.asked(), shares);
    own = shares.front();
  }
  if (!missing.empty()) measuring.begin(missing, own);
  for (const ShardKey& key : own) {
    run.commit(key, measuring.measure(key));
    measuring.done(key);
    if (others != nullptr) adopt_arrived(run, *others, measuring);
  }
  if (others != nullptr) {
    for (adopt_arrived(run, *others, measuring); others->waits_for_shards(); adopt_arrived(run, *others, measuring)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  const bool written = run.combine();
  if (others != nullptr) others->wait_for_the_others_to_end();
  return {std::ssize(missing), written};
}

std::int64_t fill_share(FollowingRank& rank, const Request& asked, const Measuring& measuring) {
  const std::vector<ShardKey> share = rank.share(asked);
  if (!share.empty()) measuring.begin(share, share);
  for (const ShardKey& key : share) {
    rank.commit(key, measuring.measure(key));
    measuring.done(key);
  }
  return std::ssize(share);
}

}  // namespace gainlens::runfile
