// A disk that is full while a run folder is written.
#include "core/error.h"
#include "core/json.h"
#include "core/sha256.h"
#include "runfile/made_run.h"
#include "runfile/run_folder.h"
#include "support/child_process.h"
#include "support/file_size_limit.h"
#include "support/shared_data.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>
#include <string>

namespace gainlens::runfile {
namespace full_disk_test {

namespace fs = std::filesystem;
using testing::FileSizeLimit;
using testing::in_child;
using testing::made_request;
using testing::made_result;
using testing::make_run;
using testing::TemporaryFolder;

TEST(RunFolderOnAFullDisk, WritingAShardKeepsTheEarlierOnes) {
  const TemporaryFolder folder;
  const auto bytes_of_shard = [] {
    const TemporaryFolder place;
    make_run(place.path(), made_request());
    return fs::file_size(place.path() / "shards/T24-S0.h5");
  }();
  for (const auto share : {0.02, 0.3, 0.6, 0.9, 0.999}) {
    const auto limit = static_cast<rlim_t>(share * static_cast<double>(bytes_of_shard));
    const int status = in_child([&] {
      auto run = RunFolder::open_or_resume(folder.path(), made_request());
      if (run.missing().size() == 4) run.commit({8, 0}, made_result(run.request(), {8, 0}));
      const FileSizeLimit full(limit);
      try {
        run.commit({24, 0}, made_result(run.request(), {24, 0}));
      } catch (const RunFailed& error) {
        const std::string message = error.what();
        const bool named = message.find("shards/T24-S0.h5.tmp: cannot be written") != std::string::npos &&
                           message.find("File too large") != std::string::npos;
        return named ? 1 : 4;
      }
      return 0;
    });
    ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 1) << "limit " << limit;
    EXPECT_FALSE(fs::exists(folder.path() / "shards/T24-S0.h5.tmp"));
    EXPECT_FALSE(fs::exists(folder.path() / "shards/T24-S0.h5"));
    EXPECT_EQ(RunFolder::open_or_resume(folder.path(), made_request()).missing().size(), 3u);
  }
}

TEST(RunFolderOnAFullDisk, CombiningKeepsTheShards) {
  const TemporaryFolder folder;
  make_run(folder.path(), made_request());
  const auto bytes = fs::file_size(folder.path() / "run.h5");
  const std::string digest = sha256_file(folder.path() / "run.h5");
  fs::remove(folder.path() / "run.h5");
  for (const auto share : {0.1, 0.5, 0.99}) {
    const int status = in_child([&] {
      auto run = RunFolder::open_or_resume(folder.path(), made_request());
      const FileSizeLimit full(static_cast<rlim_t>(share * static_cast<double>(bytes)));
      run.combine();
      return 0;
    });
    ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 1);
    EXPECT_FALSE(fs::exists(folder.path() / "run.h5.tmp"));
  }
  make_run(folder.path(), made_request());
  EXPECT_EQ(sha256_file(folder.path() / "run.h5"), digest);
}

TEST(RunFolderOnAFullDisk, ListingAShardLeavesNoTornLine) {
  const TemporaryFolder folder;
  auto run = RunFolder::open_or_resume(folder.path(), made_request());
  run.commit({24, 0}, made_result(run.request(), {24, 0}));
  const fs::path manifest = folder.path() / "manifest.jsonl";
  // The manifest is longer than a shard, so that the limit stops its next line and not the shard. Of two lines for one
  // shard, the later one counts.
  const std::string line = read_text_file(manifest);
  std::string lines;
  while (lines.size() < 2 * fs::file_size(folder.path() / "shards/T24-S0.h5")) lines += line;
  std::ofstream(manifest, std::ios::binary) << lines;
  const int status = in_child([&] {
    const FileSizeLimit full(lines.size() + 50);
    run.commit({24, 1}, made_result(run.request(), {24, 1}));
    return 0;
  });
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(read_text_file(manifest), lines);
}

}  // namespace full_disk_test
}  // namespace gainlens::runfile
