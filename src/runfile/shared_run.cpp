#include "runfile/shared_run.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/json.h"
#include "core/json_words.h"
#include "runfile/shard_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds pause{20};
constexpr std::chrono::seconds before_notice{5};
constexpr const char* resume = "run the same command again to resume";

fs::path plan_path(const fs::path& run) {
  return run / ranks_folder_name / "plan.json";
}

/// Waits for processes that may never start. It gives one notice, and throws when `patience` is over.
class Wait {
 public:
  Wait(std::chrono::milliseconds patience, const Notice& notice) : patience_(patience), notice_(notice) {}

  /// @param whom  "rank 2 of 4"
  void step(const fs::path& run, const std::string& whom) {
    const auto waited = Clock::now() - begin_;
    if (waited >= patience_) {
      throw_run_failed(
          "{}: {} has not come within {} seconds; start every rank (torchrun or srun does) on this folder, or unset "
          "the variables RANK and WORLD_SIZE, or SLURM_PROCID, for a single process",
          printable(run.string()), whom, std::chrono::duration_cast<std::chrono::seconds>(patience_).count());
    }
    if (!said_ && notice_ && waited >= before_notice) {
      notice_(fmt::format("waiting for {} to start on {}", whom, printable(run.string())));
      said_ = true;
    }
    std::this_thread::sleep_for(pause);
  }

 private:
  std::chrono::milliseconds patience_;
  const Notice& notice_;
  Clock::time_point begin_ = Clock::now();
  bool said_ = false;
};

Json as_json(const std::vector<ShardKey>& keys) {
  Json json = Json::array();
  for (const ShardKey& key : keys) json.push_back({key.length, key.sample});
  return json;
}

}  // namespace

LeadingRank::LeadingRank(fs::path run, const ProcessGroup& group, std::chrono::milliseconds patience, Notice notice)
    : run_(std::move(run)),
      size_(group.size),
      patience_(patience),
      notice_(std::move(notice)),
      self_(run_, 0, std::chrono::milliseconds(0)) {
  ASSERT(group.rank == 0, "rank {} leads", group.rank);
}

LeadingRank::~LeadingRank() {
  std::error_code ignored;
  fs::remove(plan_path(run_), ignored);
}

/// Waits until all ranks are alive at the same moment. A rank that started and ended meanwhile is noticed.
std::vector<std::string> LeadingRank::wait_for_tokens() const {
  std::vector<std::string> tokens(static_cast<std::size_t>(size_));
  tokens.front() = self_.token();
  Wait wait(patience_, notice_);
  for (;;) {
    std::int64_t absent = 0;
    for (std::int64_t rank = 1; rank < size_; ++rank) {
      const auto token = living_rank(run_, rank);
      std::string& seen = tokens[static_cast<std::size_t>(rank)];
      if (!token && !seen.empty())
        throw_run_failed("{}: rank {} ended before the work began; {}", printable(run_.string()), rank, resume);
      if (token) seen = *token;
      if (!token && absent == 0) absent = rank;
    }
    if (absent == 0) return tokens;
    wait.step(run_, fmt::format("rank {} of {}", absent, size_));
  }
}

void LeadingRank::deal(const Request& asked, const std::vector<std::vector<ShardKey>>& shares) {
  ASSERT(std::ssize(shares) == size_, "{} shares for {} processes", shares.size(), size_);
  tokens_ = wait_for_tokens();
  Json plan = {{"request", asked.to_json()}, {"tokens", tokens_}, {"shares", Json::array()}};
  for (const auto& share : shares) plan["shares"].push_back(as_json(share));
  write_file_atomically(plan_path(run_), plan.dump() + "\n");
  for (std::int64_t rank = 1; rank < size_; ++rank) {
    for (const ShardKey& key : shares[static_cast<std::size_t>(rank)]) awaited_.push_back({rank, key});
  }
}

bool LeadingRank::is_alive(std::int64_t rank) const {
  return living_rank(run_, rank) == tokens_[static_cast<std::size_t>(rank)];
}

std::vector<ShardKey> LeadingRank::arrived() {
  std::vector<bool> alive(
      static_cast<std::size_t>(size_));  // asked before looking for files: a rank may write its last shard and end
  std::set<std::int64_t> ranks;
  for (const Awaited& awaited : awaited_) ranks.insert(awaited.rank);
  for (const std::int64_t rank : ranks) alive[static_cast<std::size_t>(rank)] = is_alive(rank);
  std::vector<ShardKey> there;
  std::vector<Awaited> still;
  for (const Awaited& awaited : awaited_) {
    if (fs::exists(run_ / "shards" / shard_file_name(awaited.key))) {
      there.push_back(awaited.key);
    } else {
      still.push_back(awaited);
    }
  }
  awaited_ = std::move(still);
  for (const Awaited& awaited : awaited_) {
    if (alive[static_cast<std::size_t>(awaited.rank)]) continue;
    throw_run_failed("{}: rank {} ended before its shards were there (missing: the chunk of {} tokens, sample {}); {}",
                     printable(run_.string()), awaited.rank, awaited.key.length, awaited.key.sample, resume);
  }
  return there;
}

void LeadingRank::wait_for_the_others_to_end() const {
  for (std::int64_t rank = 1; rank < size_; ++rank) {
    while (is_alive(rank)) std::this_thread::sleep_for(pause);
  }
}

FollowingRank::FollowingRank(fs::path run, const ProcessGroup& group, std::chrono::milliseconds patience, Notice notice)
    : run_(std::move(run)),
      group_(group),
      patience_(patience),
      notice_(std::move(notice)),
      self_(run_, group.rank, patience) {
  ASSERT(group.rank > 0, "rank {} follows", group.rank);
}

/// Empty if there is no plan, or if it belongs to another start.
std::optional<FollowingRank::Plan> FollowingRank::read_plan() const {
  const fs::path path = plan_path(run_);
  if (!fs::exists(path)) return std::nullopt;
  Json json;
  try {
    json = read_json_file(path);
  } catch (const InvalidArgument&) {
    if (!fs::exists(path)) return std::nullopt;  // its start has just ended
    throw;
  }
  const auto rank = static_cast<std::size_t>(group_.rank);
  Plan plan;
  try {
    json.at("tokens").get_to(plan.tokens);
    if (rank >= plan.tokens.size() || plan.tokens[rank] != self_.token()) return std::nullopt;
    for (const Json& key : json.at("shares").at(rank)) plan.share.push_back({key.at(0), key.at(1)});
  } catch (const Json::exception& error) {
    throw_invalid("{}: is not a plan of gainlens: {}; delete it and run the same command again",
                  printable(path.string()), json_error_in_words(error));
  }
  plan.asked = Request::from_json(json.value("request", Json()), path.string());
  return plan;
}

void FollowingRank::wait_for_share() {
  std::optional<std::string> leader;
  Wait wait(patience_, notice_);
  while (!plan_) {
    const auto living = living_rank(run_, 0);  // asked before the plan: rank 0 may write it and end
    plan_ = read_plan();
    if (plan_) break;
    if (leader && living != leader) {
      throw_run_failed("{}: rank 0 ended before it had dealt out the work; its own message says why",
                       printable(run_.string()));
    }
    leader = living;
    if (living) {
      std::this_thread::sleep_for(pause);
    } else {
      wait.step(run_, fmt::format("rank 0 of {}", group_.size));
    }
  }
  CHECK(std::ssize(plan_->tokens) == group_.size,
        "rank {}: its environment says that {} processes share the run, and the environment of rank 0 says {}",
        group_.rank, group_.size, plan_->tokens.size());
}

std::vector<ShardKey> FollowingRank::share(const Request& asked) const {
  ASSERT(plan_, "there is no share before wait_for_share");
  const Request& first = plan_->asked;
  const std::string difference = first.difference(asked);
  CHECK(difference.empty(), "rank {}: was asked for another run than rank 0: {}", group_.rank, difference);
  CHECK(first.lengths == asked.lengths && first.samples == asked.samples,
        "rank {}: was asked for {} samples of lengths [{}], and rank 0 for {} of [{}]", group_.rank, asked.samples,
        fmt::join(asked.lengths, ", "), first.samples, fmt::join(first.lengths, ", "));
  return plan_->share;
}

void FollowingRank::check_leader_is_alive() const {
  if (living_rank(run_, 0) == plan_->tokens.front()) return;
  throw_run_failed("{}: rank 0 ended before the run was complete; {}", printable(run_.string()), resume);
}

void FollowingRank::commit(const ShardKey& key, const ShardResult& result) {
  ASSERT(plan_, "there is no share before wait_for_share");
  const fs::path path = run_ / "shards" / shard_file_name(key);
  TemporaryFile temporary(
      path, path.string() + "." + self_.token() + ".tmp");  // a rank 0 that resumes meanwhile uses another name
  write_shard(temporary.path(), plan_->asked, key, result);
  check_leader_is_alive();
  temporary.publish();
}

}  // namespace gainlens::runfile
