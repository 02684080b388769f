// The checksums of a checkpoint are kept for each user: sweeps into other folders do not read the weights again.
#include "cli/tiny_checkpoint.h"
#include "core/json.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::testing {
namespace checksum_cache_test {

namespace fs = std::filesystem;

class ChecksumCache : public ::testing::Test {
 protected:
  ProgramResult sweep(const std::string& out, const std::string& environment) const {
    return run_shell(fmt::format("{} " QUOTED_PROGRAM " sweep {} --tokens ids.json --lengths 16 --samples 1 "
                                 "--threads 1 --quiet --out {}",
                                 environment, shell_word(tiny_checkpoint), out),
                     folder_.path());
  }
  Json model_of(const std::string& run) const {
    return read_json_file(folder_.path() / run / "request.json").at("model");
  }

  TemporaryFolder folder_;
  std::string ids_ = write_ids(folder_.path(), 64);
};

TEST_F(ChecksumCache, ASecondSweepIntoAnotherFolderHashesNothing) {
  const std::string environment = "env XDG_CACHE_HOME=" + folder_.path().string();
  ASSERT_EQ(sweep("first", environment).exit_code, 0);
  const fs::path file = folder_.path() / "gainlens/checksums.json";
  Json entries = read_json_file(file);
  EXPECT_EQ(entries.size(), model_of("first").size());
  // A sweep that hashed the files would find their true checksums.
  const std::string forged(64, '0');
  for (auto& [path, entry] : entries.items()) entry["sha256"] = forged;
  write_file(file, entries.dump());
  ASSERT_EQ(sweep("second", environment).exit_code, 0);
  EXPECT_EQ(model_of("second"), Json({{"config.json", forged}, {"model.safetensors", forged}}));
  EXPECT_FALSE(read_json_file(folder_.path() / "second/log.json").contains("file_hashes"));
}

TEST_F(ChecksumCache, TheRunIsTheSameWithoutACache) {
  ASSERT_EQ(sweep("with", "env XDG_CACHE_HOME=" + folder_.path().string()).exit_code, 0);
  for (const char* environment :
       {"env -u XDG_CACHE_HOME -u HOME", "env XDG_CACHE_HOME=/proc/gainlens", "env XDG_CACHE_HOME=/dev/null"}) {
    const ProgramResult result = sweep("without", environment);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(run_shell("cmp with/run.h5 without/run.h5 && cmp with/request.json without/request.json && rm -r without",
                        folder_.path())
                  .exit_code,
              0);
  }
}

TEST_F(ChecksumCache, ARunOfAnOlderVersionKeepsItsLogReadable) {
  const std::string environment = "env XDG_CACHE_HOME=" + folder_.path().string();
  ASSERT_EQ(sweep("run", environment).exit_code, 0);
  const fs::path path = folder_.path() / "run/log.json";
  Json log = read_json_file(path);
  log["file_hashes"] = {{"/weights", {{"sha256", std::string(64, '0')}}}};
  write_file(path, log.dump());
  const ProgramResult again = sweep("run", environment);
  EXPECT_EQ(again.exit_code, 0) << again.error;
  EXPECT_THAT(again.out, ::testing::HasSubstr("complete, nothing to do"));
}

}  // namespace checksum_cache_test
}  // namespace gainlens::testing
