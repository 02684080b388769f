#include "runfile/run_proof.h"

#include "core/error.h"
#include "core/json.h"
#include "core/sha256.h"
#include "runfile/folder_lock.h"
#include "runfile/made_run.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>

namespace gainlens::runfile {
namespace run_proof_test {

namespace fs = std::filesystem;
using gainlens::testing::made_request;
using gainlens::testing::make_run;
using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

class RunProofTest : public ::testing::Test {
 protected:
  void SetUp() override { make_run(run, made_request()); }

  /// Changes one byte in the middle of a file.
  void corrupt(const fs::path& file) const {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(fs::file_size(file) / 2));
    const int byte = stream.get();
    stream.seekp(-1, std::ios::cur);
    stream.put(static_cast<char>(byte ^ 1));
  }
  fs::path some_shard() const { return *fs::directory_iterator(run / "shards"); }

  TemporaryFolder folder;
  fs::path run = folder.path() / "run";
};

TEST_F(RunProofTest, AWholeRunIsProvenAndLeftAsItIs) {
  std::map<fs::path, fs::file_time_type> before;
  for (const auto& entry : fs::recursive_directory_iterator(run)) before[entry.path()] = entry.last_write_time();
  const RunProof proof = prove_run(run);
  EXPECT_EQ(proof.shards, 4u);  // two lengths, two samples
  EXPECT_THAT(proof.unproven, IsEmpty());
  for (const auto& [path, time] : before) EXPECT_EQ(fs::last_write_time(path), time) << path;
}

TEST_F(RunProofTest, APipeInThePlaceOfTheLockIsNotWaitedFor) {
  fs::remove(run / "lock");
  ASSERT_EQ(::mkfifo((run / "lock").c_str(), 0600), 0);
  ::alarm(60);  // ends a test that waits for a writer
  EXPECT_EQ(prove_run(run).shards, 4u);
  ::alarm(0);
}

TEST_F(RunProofTest, AChangedShardIsNamedWithItsChecksums) {
  const fs::path shard = some_shard();
  corrupt(shard);
  EXPECT_THAT([&] { prove_run(run); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr(shard.string()), HasSubstr("its sha256 is "), HasSubstr("manifest.jsonl says "))));
}

TEST_F(RunProofTest, AListedChunkThatIsNoneOfTheRunIsNoMissingShard) {
  std::ofstream(run / "manifest.jsonl", std::ios::app)
      << Json{{"length", 9}, {"sample", 0}, {"sha256", std::string(64, 'a')}}.dump() << "\n";
  EXPECT_THAT([&] { prove_run(run); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("manifest.jsonl: lists the chunk of 9 tokens, sample 0"),
                                                   HasSubstr("delete the file and repeat the sweep command"))));
}

TEST_F(RunProofTest, AMissingShardIsNamed) {
  const fs::path shard = some_shard();
  fs::remove(shard);
  EXPECT_THAT([&] { prove_run(run); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(shard.string()), HasSubstr("is not there"))));
}

TEST_F(RunProofTest, AChangedRunFileIsNamed) {
  corrupt(run / "run.h5");
  EXPECT_THAT([&] { prove_run(run); }, ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("run.h5: its sha256 is "),
                                                                            HasSubstr("repeat the sweep command"))));
}

TEST_F(RunProofTest, ARunBeingWrittenIsRefused) {
  const FolderLock writer(run);  // a separate open file with its own lock, as in another process
  EXPECT_THAT([&] { prove_run(run); },
              ThrowsMessage<InvalidArgument>(HasSubstr("is writing this run, so its numbers still change")));
}

TEST_F(RunProofTest, ATornManifestLineCountsAsNotWritten) {
  std::ofstream(run / "manifest.jsonl", std::ios::app) << "{\"length\": 8, \"sam";
  EXPECT_EQ(prove_run(run).shards, 4u);
}

TEST_F(RunProofTest, WhatCannotBeProvenIsSaid) {
  const auto expect_said = [](const fs::path& path, const std::string& sentence) {
    const RunProof proof = prove_run(path);
    EXPECT_THAT(proof.unproven, HasSubstr(sentence));
    EXPECT_FALSE(proof.run_file_compared) << sentence;
  };
  EXPECT_TRUE(prove_run(run).run_file_compared);
  expect_said(run / "run.h5", "not proven");
  fs::remove(run / "log.json");
  expect_said(run, "log.json keeps no checksum");
  fs::remove(run / "manifest.jsonl");
  expect_said(run, "no manifest.jsonl");
  write_checksum_beside(run / "run.h5");
  EXPECT_TRUE(prove_run(run).run_file_compared);
  EXPECT_TRUE(prove_run(run / "run.h5").run_file_compared);
}

TEST_F(RunProofTest, ACombinedFileMustHoldTheRequestAndTheListedChunksAlone) {
  std::ofstream(run / "manifest.jsonl", std::ios::trunc).flush();
  EXPECT_THAT([&] { prove_run(run); }, ThrowsMessage<InvalidArgument>(HasSubstr("which manifest.jsonl does not list")));
}

TEST_F(RunProofTest, ACombinedFileOfAnotherRequestIsRefused) {
  Json request = read_json_file(run / "request.json");
  request["text"] = std::string(64, 'e');
  std::ofstream(run / "request.json", std::ios::trunc) << request.dump();
  EXPECT_THAT([&] { prove_run(run); },
              ThrowsMessage<InvalidArgument>(HasSubstr("is not of the request in request.json")));
}

TEST_F(RunProofTest, AFolderWithoutAManifestIsComparedWithTheStoredChecksums) {
  fs::remove(run / "manifest.jsonl");
  EXPECT_THAT(prove_run(run).unproven, HasSubstr("run.h5 has the checksum that was stored with it"));
  std::ofstream(run / "run.h5", std::ios::app) << "x";
  EXPECT_THAT([&] { prove_run(run); }, ThrowsMessage<InvalidArgument>(HasSubstr("the file has changed")));
}

TEST(RunProof, AFileIsComparedWithTheChecksumBesideIt) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "run.h5", list = folder.path() / "run.h5.sha256";
  std::ofstream(file) << "bytes";
  std::ofstream(list) << sha256_file(file) << "  run.h5\n";
  EXPECT_THAT(prove_run(file).unproven, HasSubstr("has the checksum that lies beside it"));
  std::ofstream(file, std::ios::app) << "x";
  EXPECT_THAT([&] { prove_run(file); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the file is damaged or was changed")));
}

}  // namespace run_proof_test
}  // namespace gainlens::runfile
