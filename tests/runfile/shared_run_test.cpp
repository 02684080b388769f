#include "runfile/shared_run.h"

#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/json.h"
#include "core/sha256.h"
#include "runfile/made_run.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>

namespace gainlens::runfile {
namespace shared_run_test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::AllOf;
using testing::bytes_of;
using ::testing::HasSubstr;
using testing::made_request;
using testing::made_result;
using testing::make_run;
using testing::TemporaryFolder;

/// A request with enough chunks for several ranks.
Request wide_request() {
  Request request = made_request();
  request.lengths = {8, 16, 24};
  request.samples = 3;
  return request;
}

Measuring measuring(const Request& request, std::chrono::milliseconds time_of_each) {
  Measuring result;
  auto promised =
      std::make_shared<std::vector<ShardKey>>();  // the keys that begin announces, in the order measure will get them
  result.measure = [=](const ShardKey& key) {
    if (promised->empty() || promised->front() != key)
      throw std::logic_error("a shard that was not announced, or not in this order");
    promised->erase(promised->begin());
    std::this_thread::sleep_for(time_of_each);
    return made_result(request, key);
  };
  result.cost = [](const ShardKey& key) { return static_cast<double>(key.length); };
  result.begin = [=](const std::vector<ShardKey>&, const std::vector<ShardKey>& own) { *promised = own; };
  result.done = [](const ShardKey&) {};
  return result;
}

/// Does the work of one process of a group.
/// @returns the number of shards that it reports
std::int64_t take_part(const fs::path& folder, const Request& request, std::int64_t rank, std::int64_t size,
                       std::chrono::milliseconds time_of_each = 5ms, std::chrono::milliseconds patience = 20s) {
  const ProcessGroup group{rank, size, {}};
  prepare_run_folder(folder);
  if (rank > 0) {
    FollowingRank self(folder, group, patience, {});
    self.wait_for_share();
    return fill_share(self, request, measuring(request, time_of_each));
  }
  LeadingRank self(folder, group, patience, {});
  auto run = RunFolder::open_or_resume(folder, request);
  return fill_run(run, &self, measuring(request, time_of_each)).chunks;
}

/// Runs take_part() in a new process. Its exit code is 0, or 1 with the error message in the file
/// `folder`.message-RANK.
pid_t start(const fs::path& folder, const Request& request, std::int64_t rank, std::int64_t size,
            std::chrono::milliseconds time_of_each = 5ms, std::chrono::milliseconds patience = 20s) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  int code = 0;
  try {
    take_part(folder, request, rank, size, time_of_each, patience);
  } catch (const std::exception& error) {
    std::ofstream(folder.string() + ".message-" + std::to_string(rank)) << error.what();
    code = 1;
  }
  ::_exit(code);
}

std::vector<pid_t> start_all(const fs::path& folder, const Request& request, std::int64_t size,
                             std::chrono::milliseconds time_of_each = 5ms, std::chrono::milliseconds patience = 20s) {
  std::vector<pid_t> processes;
  for (std::int64_t rank = size - 1; rank >= 0; --rank) {
    processes.insert(processes.begin(), start(folder, request, rank, size, time_of_each, patience));
  }
  return processes;
}

/// Waits for the processes.
/// @returns 0 if all succeeded
int wait_for(const std::vector<pid_t>& processes) {
  int worst = 0;
  for (const pid_t process : processes) {
    int status = 0;
    ::waitpid(process, &status, 0);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 99);
  }
  return worst;
}

std::string message(const fs::path& folder, int rank) {
  return bytes_of(folder.string() + ".message-" + std::to_string(rank));
}

/// The contents of all files in a run folder that do not hold times, by name.
std::map<std::string, std::string> content(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    if (name != "log.json" && name != "lock")
      files[name] = entry.is_directory() ? "folder" : sha256_hex(bytes_of(entry.path()));
  }
  return files;
}

class SharedRun : public ::testing::Test {
 protected:
  TemporaryFolder place_;
  fs::path folder_ = place_.path() / "run";
  Request request_ = wide_request();
  std::map<std::string, std::string> alone() const {
    const fs::path folder = place_.path() / "alone";
    if (!fs::exists(folder)) make_run(folder, request_);
    return content(folder);
  }
};

TEST_F(SharedRun, IsTheRunOfOneProcessByteForByte) {
  for (const std::int64_t size : {2, 3, 12}) {  // 12: more processes than chunks
    ASSERT_EQ(wait_for(start_all(folder_, request_, size)), 0) << message(folder_, 0);
    EXPECT_EQ(content(folder_), alone()) << size;
    EXPECT_FALSE(fs::exists(folder_ / "ranks"));
    fs::remove_all(folder_);
  }
}

TEST_F(SharedRun, TheWorkIsShared) {
  const std::vector<pid_t> others = {start(folder_, request_, 1, 2, 20ms)};
  std::vector<ShardKey> own;
  LeadingRank self(folder_, {0, 2, {}}, 20s, {});
  auto run = RunFolder::open_or_resume(folder_, request_);
  Measuring measure = measuring(request_, 20ms);
  int done = 0;
  measure.measure = [&](const ShardKey& key) { return own.push_back(key), made_result(request_, key); };
  measure.done = [&](const ShardKey&) { ++done; };
  const FilledRun filled = fill_run(run, &self, measure);
  EXPECT_EQ(filled.chunks, 9);
  EXPECT_TRUE(filled.run_file_written);
  EXPECT_EQ(wait_for(others), 0);
  EXPECT_EQ(done, 9);
  // The longest chunks are dealt first. Loads: 24 24 | 48 24 | 48 40 | 48 56 | 64 56 | 64 64 | 72 64 | 72 72. The nine
  // chunks go to the ranks 0 1 0 1 1 0 1 0 1.
  EXPECT_THAT(own, ::testing::ElementsAre(ShardKey{8, 1}, ShardKey{16, 2}, ShardKey{24, 0}, ShardKey{24, 2}));
}

TEST_F(SharedRun, ACoveredRequestEndsAtOnceInEveryProcess) {
  make_run(folder_, request_);
  EXPECT_EQ(wait_for(start_all(folder_, request_, 3)), 0);
  EXPECT_EQ(content(folder_), alone());
}

TEST_F(SharedRun, KilledAnywhereItIsResumedByAnyNumberOfProcesses) {
  std::mt19937 random(11);
  for (int round = 0; round < 6; ++round) {
    for (const std::int64_t size : {3, 2}) {
      const auto processes = start_all(folder_, request_, size, 15ms, 500ms);  // a rank may be killed before it is seen
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 80));
      const auto victim = static_cast<std::size_t>(random() % static_cast<unsigned>(size));
      ::kill(processes[victim], SIGKILL);
      wait_for(processes);
    }
    if (round % 2 == 0) {
      make_run(folder_, request_);
    } else {
      ASSERT_EQ(wait_for(start_all(folder_, request_, 2)), 0) << message(folder_, 0) << message(folder_, 1);
    }
    EXPECT_EQ(content(folder_), alone()) << round;
    fs::remove_all(folder_);
  }
}

TEST_F(SharedRun, RankZeroSaysWhichRankHasEnded) {
  const auto processes = start_all(folder_, request_, 2, 60ms);
  while (!fs::exists(folder_ / "ranks/plan.json")) std::this_thread::sleep_for(1ms);
  ::kill(processes[1], SIGKILL);
  EXPECT_NE(wait_for(processes), 0);
  EXPECT_THAT(message(folder_, 0), AllOf(HasSubstr("rank 1 ended before its shards were there"),
                                         HasSubstr("run the same command again to resume")));
}

TEST_F(SharedRun, OthersEndWhenRankZeroHasEnded) {
  const auto processes = start_all(folder_, request_, 2, 60ms);
  while (!fs::exists(folder_ / "ranks/plan.json")) std::this_thread::sleep_for(1ms);
  ::kill(processes[0], SIGKILL);
  EXPECT_NE(wait_for(processes), 0);
  EXPECT_THAT(message(folder_, 1),
              HasSubstr("rank 0 ended before the run was complete; run the same command again to resume"));
}

TEST_F(SharedRun, ARankThatNeverComesIsNamed) {
  EXPECT_NE(wait_for({start(folder_, request_, 0, 2, 5ms, 200ms)}), 0);
  EXPECT_THAT(message(folder_, 0), AllOf(HasSubstr("rank 1 of 2 has not come within"), HasSubstr("start every rank")));
  EXPECT_NE(wait_for({start(folder_, request_, 1, 2, 5ms, 200ms)}), 0);
  EXPECT_THAT(message(folder_, 1), HasSubstr("rank 0 of 2 has not come within"));
  EXPECT_FALSE(fs::exists(folder_ / "ranks"));
}

TEST_F(SharedRun, ARankThatAsksForSomethingElseIsRefused) {
  Request other = request_;
  other.dtype = "float64";
  const pid_t leader = start(folder_, request_, 0, 2);
  EXPECT_NE(wait_for({start(folder_, other, 1, 2)}), 0);
  EXPECT_NE(wait_for({leader}), 0);
  EXPECT_EQ(
      message(folder_, 1),
      "rank 1: was asked for another run than rank 0: --dtype is \"float32\" in the stored request and \"float64\" "
      "in this one");
  other = request_;
  other.samples = 2;
  const pid_t again = start(folder_, request_, 0, 2);
  EXPECT_NE(wait_for({start(folder_, other, 1, 2)}), 0);
  EXPECT_NE(wait_for({again}), 0);
  EXPECT_EQ(message(folder_, 1),
            "rank 1: was asked for 2 samples of lengths [8, 16, 24], and rank 0 for 3 of [8, 16, 24]");
}

TEST_F(SharedRun, GroupsOfDifferentSizesAreRefused) {
  const pid_t leader = start(folder_, request_, 0, 2);
  EXPECT_NE(wait_for({start(folder_, request_, 1, 3)}), 0);
  EXPECT_NE(wait_for({leader}), 0);
  EXPECT_THAT(message(folder_, 1),
              HasSubstr("its environment says that 3 processes share the run, and the environment of rank 0 says 2"));
}

TEST_F(SharedRun, ARankStartedTwiceIsRefused) {
  prepare_run_folder(folder_);
  const RankFile first(folder_, 1, 0ms);
  EXPECT_EQ(living_rank(folder_, 1), first.token());
  EXPECT_NE(wait_for({start(folder_, request_, 1, 2, 5ms, 100ms)}), 0);
  EXPECT_THAT(message(folder_, 1), AllOf(HasSubstr("process " + first.token() + " is rank 1 of this run"),
                                         HasSubstr("start each rank once")));
}

TEST_F(SharedRun, WhatACrashedStartLeftBehindDoesNotConfuseTheNext) {
  prepare_run_folder(folder_);
  fs::create_directories(folder_ / "ranks");
  for (const char* name : {"rank-0", "rank-1", "rank-7", "rank-2.x.tmp"})
    std::ofstream(folder_ / "ranks" / name) << "1@elsewhere-0";
  std::ofstream(folder_ / "ranks/plan.json") << Json{{"request", request_.to_json()},
                                                     {"tokens", {"1@elsewhere-0", "1@elsewhere-0"}},
                                                     {"shares", {Json::array(), Json::array()}}};
  EXPECT_FALSE(living_rank(folder_, 1));
  ASSERT_EQ(wait_for(start_all(folder_, request_, 2)), 0) << message(folder_, 0) << message(folder_, 1);
  EXPECT_EQ(content(folder_), alone());
}

/// Rank 0 looks for dead ranks at the moment when rank 1 takes the name of a dead one.
TEST_F(SharedRun, ARankThatComesWhileDeadOnesAreRemovedStays) {
  prepare_run_folder(folder_);
  for (int round = 0; round < 2000; ++round) {
    fs::create_directories(folder_ / "ranks");
    std::ofstream(folder_ / "ranks/rank-1") << "1@elsewhere-0";
    std::thread leader([&] { remove_dead_ranks(folder_); });
    const RankFile follower(folder_, 1, 1s);
    leader.join();
    ASSERT_EQ(living_rank(folder_, 1), follower.token()) << "round " << round;
    ASSERT_EQ(std::distance(fs::directory_iterator(folder_ / "ranks"), fs::directory_iterator()), 1);
  }
}

/// How often the file was opened since the object was made.
class Openings {
 public:
  explicit Openings(const fs::path& file) : watch_(::inotify_init1(IN_NONBLOCK)) {
    // Closings are watched too: the system merges equal events that follow each other.
    EXPECT_GE(::inotify_add_watch(watch_.get(), file.c_str(), IN_OPEN | IN_CLOSE), 0);
  }
  std::size_t count() const {
    std::size_t openings = 0;
    inotify_event event{};  // of one file: without a name
    while (::read(watch_.get(), &event, sizeof event) == sizeof event) openings += (event.mask & IN_OPEN) != 0 ? 1 : 0;
    return openings;
  }

 private:
  FileDescriptor watch_;
};

TEST_F(SharedRun, ALookForShardsAsksOncePerRank) {
  prepare_run_folder(folder_);
  fs::create_directories(folder_ / "shards");
  LeadingRank leader(folder_, {0, 2, {}}, 20s, {});
  const RankFile follower(folder_, 1, 1s);
  leader.deal(request_, {{}, {{8, 0}, {8, 1}, {8, 2}, {8, 3}}});
  const Openings openings(folder_ / "ranks/rank-1");
  EXPECT_TRUE(leader.arrived().empty());
  EXPECT_EQ(openings.count(), 1u);
}

TEST_F(SharedRun, AShardOfAnotherRequestIsNotTakenIn) {
  Request other = request_;
  other.threads = 7;
  make_run(place_.path() / "other", other);
  auto run = RunFolder::open_or_resume(folder_, request_);
  fs::copy_file(place_.path() / "other/shards/T8-S0.h5", folder_ / "shards/T8-S0.h5");
  EXPECT_THAT(
      [&] {
        run.adopt({8, 0});
      },
      ::testing::ThrowsMessage<InvalidArgument>(HasSubstr("it was made for another request")));
}

TEST_F(SharedRun, TheFolderOfSomethingElseIsLeftAlone) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "thesis.tex") << "x";
  EXPECT_NE(wait_for({start(folder_, request_, 1, 2)}), 0);
  EXPECT_THAT(message(folder_, 1), HasSubstr("is not empty and not a run (it holds 'thesis.tex'"));
  EXPECT_FALSE(fs::exists(folder_ / "ranks"));
}

}  // namespace shared_run_test
}  // namespace gainlens::runfile
