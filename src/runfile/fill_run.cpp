#include "runfile/fill_run.h"

#include "runfile/work_shares.h"

#include <algorithm>
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

/// Returns whether shards have arrived.
bool adopt_arrived(RunFolder& run, LeadingRank& others, const Measuring& measuring) {
  const std::vector<ShardKey> arrived = others.arrived();
  for (const ShardKey& key : arrived) {
    run.adopt(key);
    measuring.done(key);
  }
  return !arrived.empty();
}

/// Waits for the shards of the other ranks. Each look opens files on a disk that machines may share, so the pause
/// between two looks doubles up to a second, until something arrives.
void await_shards(RunFolder& run, LeadingRank& others, const Measuring& measuring) {
  constexpr std::chrono::milliseconds shortest{20}, longest{1000};
  std::chrono::milliseconds pause = shortest;
  for (;;) {
    if (adopt_arrived(run, others, measuring)) pause = shortest;
    if (!others.waits_for_shards()) return;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, longest);
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
  if (others != nullptr) await_shards(run, *others, measuring);
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
