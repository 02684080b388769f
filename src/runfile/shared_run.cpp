#include "runfile/shared_run.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/json.h"
#include "core/json_words.h"
#include "runfile/process_group.h"
#include "runfile/shard_file.h"

#include <fmt/ranges.h>

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

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

fs::path rank_path(const fs::path& run, std::int64_t rank) {
  return run / ranks_folder_name / fmt::format("rank-{}", rank);
}

std::string new_token() {
  std::array<char, 128> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {'?'};
  std::random_device random;
  return fmt::format("{}@{}-{:08x}{:08x}", ::getpid(), host.data(), random(), random());
}

/// The token in a file that a living process has locked; empty if there is no such file or no such process.
/// @throws RunFailed  the system cannot say which
std::optional<std::string> living_token(const fs::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe does not hold us up
  if (file.get() < 0 && errno == ENOENT) return std::nullopt;
  if (file.get() < 0) throw_run_failed("{}: cannot be read: {}", printable(path.string()), system_reason());
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  if (errno != EWOULDBLOCK) throw_run_failed("{}: cannot be locked: {}", printable(path.string()), system_reason());
  std::array<char, 256> token{};
  const ssize_t size = ::pread(file.get(), token.data(), token.size(), 0);
  return std::string(token.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
}

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

RankFile::RankFile(const fs::path& run, std::int64_t rank, std::chrono::milliseconds patience)
    : path_(rank_path(run, rank)), token_(new_token()), file_(-1) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto holder = living_token(path_);
    if (!holder && publish()) return;
    CHECK(!holder || std::chrono::steady_clock::now() < give_up,
          "{}: process {} is rank {} of this run; start each rank once, and wait until the processes of an earlier "
          "start have ended",
          printable(run.string()), printable(*holder), rank);
    std::this_thread::sleep_for(pause);
  }
}

/// Makes the rank file. It is locked and complete before another process can see it under its name. Returns false if
/// another process has meanwhile removed the folder, or the file because it was not locked yet.
bool RankFile::publish() {
  const std::string cannot = printable(path_.parent_path().string()) + ": cannot be written to";
  std::error_code error;
  fs::create_directories(path_.parent_path(), error);
  // The last process of an earlier start may remove the folder at this moment.
  if (error == std::errc::file_exists && (!fs::exists(path_.parent_path()) || fs::is_directory(path_.parent_path())))
    return false;
  if (error && error != std::errc::no_such_file_or_directory) {
    errno = error.value();
    throw_cannot_be_made(cannot);
  }
  const fs::path temporary = path_.string() + "." + token_ + ".tmp";  // after a failure remove_dead_ranks() removes it
  file_ = FileDescriptor(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file_.get() < 0 && errno == ENOENT)
    return false;  // the last process of an earlier start has just removed the folder
  if (file_.get() < 0) throw_cannot_be_made(cannot);
  // No other process keeps a lock on it, but one that looks for dead ranks locks it for a moment.
  CHECK(::flock(file_.get(), LOCK_EX) == 0, "{}: cannot be locked: {}; use a folder on a file system with locks",
        printable(path_.parent_path().string()), system_reason());
  if (!write_all(file_, token_)) throw_run_failed("{}: {}", cannot, system_reason());
  const bool renamed = ::rename(temporary.c_str(), path_.c_str()) == 0;
  if (!renamed && errno != ENOENT) throw_cannot_be_made(cannot);
  return renamed;
}

RankFile::~RankFile() {
  std::error_code ignored;
  try {
    if (living_token(path_) == token_) fs::remove(path_, ignored);
  } catch (const RunFailed&) {
    // It stays. The next start finds that its process has ended.
  }
  fs::remove(path_.parent_path(), ignored);  // succeeds only for the last process: the folder is empty then
}

std::optional<std::string> living_rank(const fs::path& run, std::int64_t rank) {
  return living_token(rank_path(run, rank));
}

void remove_dead_ranks(const fs::path& run) {
  const fs::path folder = run / ranks_folder_name;
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored))
    found.push_back(entry->path());
  for (const fs::path& path : found) {
    if (living_token(path)) continue;
    // A process that starts may have put its own file in the place of the dead one meanwhile. A file that was moved
    // away can be asked again: nobody replaces it. Other files than those of ranks have names of their own.
    const bool replaceable = !path.has_extension();
    const fs::path apart = replaceable ? path.string() + "." + new_token() + ".dead" : path.string();
    if (replaceable) fs::rename(path, apart, ignored);
    if (living_token(apart)) {
      fs::rename(apart, path, ignored);
    } else {
      fs::remove(apart, ignored);
    }
  }
  fs::remove(folder, ignored);
}

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
