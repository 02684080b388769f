#include "runfile/run_folder.h"

#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/json.h"
#include "core/sha256.h"
#include "runfile/made_run.h"
#include "runfile/run_reader.h"
#include "runfile/stored.h"
#include "support/child_process.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <functional>
#include <thread>

namespace gainlens::runfile {
namespace run_folder_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::in_child;
using ::testing::IsEmpty;
using testing::made_request;
using testing::made_result;
using testing::make_run;
using testing::TemporaryFolder;

void put(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

void flip_byte(const fs::path& path, std::size_t at) {
  std::string bytes = read_text_file(path);
  bytes.at(at) = static_cast<char>(bytes.at(at) ^ 0x40);
  put(path, bytes);
}

/// The message of the InvalidArgument that opening the folder throws.
std::string refusal(const fs::path& folder, const Request& request = made_request()) {
  return testing::refusal_of([&] { RunFolder::open_or_resume(folder, request); });
}

std::string reference_digest(const Request& request) {
  const TemporaryFolder reference;
  make_run(reference.path(), request);
  return sha256_file(reference.path() / "run.h5");
}

TEST(RunFolder, MakesTheFilesOfARun) {
  const TemporaryFolder place;
  const fs::path folder = place.path() / "new" / "run";
  auto run = RunFolder::open_or_resume(folder, made_request(), {{"command", "gainlens sweep"}});
  EXPECT_THAT(run.missing(), ElementsAre(ShardKey{8, 0}, ShardKey{8, 1}, ShardKey{24, 0}, ShardKey{24, 1}));
  run.commit({8, 1}, made_result(run.request(), {8, 1}));
  EXPECT_THAT(run.missing(), ElementsAre(ShardKey{8, 0}, ShardKey{24, 0}, ShardKey{24, 1}));
  EXPECT_EQ(read_json_file(folder / "request.json"), made_request().to_json());
  EXPECT_EQ(read_text_file(folder / "manifest.jsonl"),
            "{\"length\":8,\"sample\":1,\"sha256\":\"" + sha256_file(folder / "shards/T8-S1.h5") + "\"}\n");
  const Json log = read_json_file(folder / "log.json");
  EXPECT_EQ(log.at("starts").at(0).at("command"), "gainlens sweep");
  EXPECT_EQ(log.at("starts").at(0).at("time").get<std::string>().size(), 20u);
}

TEST(RunFolder, ResultsThatDoNotFitAreOurMistake) {
  const TemporaryFolder folder;
  auto run = RunFolder::open_or_resume(folder.path(), made_request());
  EXPECT_THROW(run.commit({8, 0}, {}), InternalError);
  EXPECT_THROW(run.commit({9, 0}, made_result(made_request(), {9, 0})), InternalError);
  run.commit({8, 0}, made_result(made_request(), {8, 0}));
  EXPECT_THROW(run.commit({8, 0}, made_result(made_request(), {8, 0})), InternalError);
}

TEST(RunFolder, TwoRunsAreEqualByteForByte) {
  const std::string digest = reference_digest(made_request());
  ::sleep(1);  // a time stored in any file would differ
  EXPECT_EQ(reference_digest(made_request()), digest);
}

TEST(RunFolder, UninitialisedMemoryDoesNotReachTheFile) {
  const TemporaryFolder place;
  // glibc fills fresh memory with the complement of this byte.
  for (const char* byte : {"17", "200"}) {
    const int status = in_child([&] {
      ::setenv("MALLOC_PERTURB_", byte, 1);
      ::execl(GAINLENS_MAKE_RUN, GAINLENS_MAKE_RUN, (place.path() / byte).c_str(), nullptr);
      return 98;
    });
    ASSERT_EQ(status, 0);
  }
  EXPECT_EQ(sha256_file(place.path() / "17/run.h5"), sha256_file(place.path() / "200/run.h5"));
}

TEST(RunFolder, KilledAtAnyMomentItResumesToTheSameBytes) {
  const std::string digest = reference_digest(made_request());
  unsigned random = 12345;
  int kills = 0;
  for (int round = 0; round < 5; ++round) {
    const TemporaryFolder folder;
    // Each attempt is killed after a random time with a growing limit, until one attempt finishes.
    for (useconds_t longest = 4000;; longest += longest / 3) {
      random = random * 1664525u + 1013904223u;
      const int status = in_child([&] { return make_run(folder.path(), made_request()), 0; }, 1 + random % longest);
      if (WIFSIGNALED(status)) {
        ++kills;
        continue;
      }
      ASSERT_EQ(WEXITSTATUS(status), 0);
      break;
    }
    EXPECT_EQ(sha256_file(folder.path() / "run.h5"), digest);
    EXPECT_FALSE(fs::exists(folder.path() / "run.h5.tmp"));
  }
  EXPECT_GE(kills, 8);
}

TEST(RunFolder, GrowsToTheUnionAndEqualsOneAskedAtOnce) {
  const TemporaryFolder folder;
  Request small = made_request();
  small.lengths = {24};
  small.samples = 1;
  make_run(folder.path(), small);
  const std::string small_digest = sha256_file(folder.path() / "run.h5");
  auto run = RunFolder::open_or_resume(folder.path(), made_request());
  EXPECT_THAT(run.missing(), ElementsAre(ShardKey{8, 0}, ShardKey{8, 1}, ShardKey{24, 1}));
  for (const ShardKey& key : run.missing()) run.commit(key, made_result(run.request(), key));
  run.combine();
  EXPECT_NE(sha256_file(folder.path() / "run.h5"), small_digest);
  EXPECT_EQ(sha256_file(folder.path() / "run.h5"), reference_digest(made_request()));
}

TEST(RunFolder, ACoveredRequestEndsAtOnceEvenWhereTheUnionIsUnfinished) {
  const TemporaryFolder folder;
  make_run(folder.path(), made_request());
  Request large = made_request();
  large.lengths = {8, 16, 24};
  { const auto extended = RunFolder::open_or_resume(folder.path(), large); }
  auto run = RunFolder::open_or_resume(folder.path(), made_request());
  EXPECT_EQ(run.request().lengths, large.lengths);
  EXPECT_THAT(run.missing(), IsEmpty());
  run.combine();
  const RunReader reader = RunReader::open(folder.path());
  EXPECT_TRUE(reader.complete(0, 1));
  EXPECT_FALSE(reader.complete(1, 0));
  const Array n_eff = reader.read("summary/n_eff");  // [3, 2, 2, 4]
  EXPECT_FALSE(std::isnan(n_eff.values.at(15)));
  for (std::size_t i = 16; i < 32; ++i) EXPECT_TRUE(std::isnan(n_eff.values.at(i)));
  const Array queries = reader.read("queries/16/gate");
  for (const double value : queries.values) EXPECT_TRUE(std::isnan(value));
}

TEST(RunFolder, CombiningAgainChangesNothingUnlessTheFileIsNotWhatItWas) {
  const TemporaryFolder folder;
  make_run(folder.path(), made_request());
  const fs::path file = folder.path() / "run.h5";
  const std::string digest = sha256_file(file);
  const auto time = fs::last_write_time(file);
  make_run(folder.path(), made_request());
  EXPECT_EQ(fs::last_write_time(file), time);
  flip_byte(file, fs::file_size(file) / 2);
  make_run(folder.path(), made_request());
  EXPECT_EQ(sha256_file(file), digest);
  fs::remove(file);
  fs::remove(folder.path() / "log.json");
  make_run(folder.path(), made_request());
  EXPECT_EQ(sha256_file(file), digest);
}

TEST(RunFolder, AFileOfTheFirstEditionIsMadeAgainFromItsShards) {
  const TemporaryFolder folder;
  make_run(folder.path(), made_request());
  const fs::path file = folder.path() / "run.h5";
  const std::string digest = sha256_file(file);
  testing::make_first_edition(file);
  // What the first edition wrote into log.json: the format, the request, and length, sample and checksum of each shard.
  std::string content = "gainlens-sweep 1\n" + made_request().to_json().dump() + "\n";
  for (const char* key : {"8 0", "8 1", "24 0", "24 1"}) {
    std::string name = fmt::format("T{}.h5", key);
    name.replace(name.find(' '), 1, "-S");
    content += fmt::format("{} {}\n", key, sha256_file(folder.path() / "shards" / name));
  }
  Json log = read_json_file(folder.path() / "log.json");
  log["combined"] = {{"content", sha256_hex(content)}, {"sha256", sha256_file(file)}};
  put(folder.path() / "log.json", log.dump());
  ASSERT_NE(sha256_file(file), digest);
  make_run(folder.path(), made_request());
  EXPECT_EQ(sha256_file(file), digest);
}

TEST(RunFolder, TheFileNamesTheProgramOfTheStartThatMadeIt) {
  const auto version_after = [](const fs::path& folder, const Json& log) {
    auto run = RunFolder::open_or_resume(folder, made_request(), log);
    for (const ShardKey& key : run.missing()) run.commit(key, made_result(run.request(), key));
    run.combine();
    return testing::StoredFile(folder / "run.h5").attribute("/", "gainlens_version");
  };
  const TemporaryFolder folder, silent, odd;
  EXPECT_EQ(version_after(folder.path(), {{"gainlens", "9.8"}}), "9.8");
  EXPECT_EQ(version_after(folder.path(), {{"gainlens", "9.9"}}), "9.8");  // nothing to do: the file stays as it is
  fs::remove(folder.path() / "run.h5");
  EXPECT_EQ(version_after(folder.path(), {{"gainlens", "9.9"}}), "9.9");
  EXPECT_EQ(version_after(silent.path(), Json::object()), "(absent)");
  EXPECT_EQ(version_after(odd.path(), {{"gainlens", 7}}), "(absent)");
}

TEST(RunFolder, AnotherRequestIsRefusedWithBothValues) {
  const TemporaryFolder folder;
  make_run(folder.path(), made_request());
  Request other = made_request();
  other.dtype = "bfloat16";
  EXPECT_EQ(refusal(folder.path(), other),
            folder.path().string() +
                ": holds the run of another request: --dtype is \"float32\" in the stored "
                "request and \"bfloat16\" in this one; give another "
                "output folder, or repeat the stored request");
  other.heads = 0;
  EXPECT_THAT(refusal(folder.path(), other), HasSubstr("request: 'heads' is 0; it must be at least 1"));
}

TEST(RunFolder, AFolderOfSomethingElseIsRefusedUntouched) {
  const TemporaryFolder folder;
  put(folder.path() / "thesis.tex", "x");
  EXPECT_THAT(refusal(folder.path()),
              HasSubstr("is not empty and not a run (it holds 'thesis.tex' and no request.json); give a new or empty"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
  EXPECT_THAT(refusal(folder.path() / "thesis.tex"), HasSubstr("cannot be used as an output folder"));
}

TEST(RunFolder, DamagedRequestAndLogAreNamed) {
  const TemporaryFolder folder;
  make_run(folder.path(), made_request());
  put(folder.path() / "log.json", "{");
  EXPECT_THAT(refusal(folder.path()),
              AllOf(HasSubstr("log.json"), HasSubstr("not valid JSON"), HasSubstr("delete it: it holds no results")));
  put(folder.path() / "log.json", "[]");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("is not the log of a run"));
  fs::remove(folder.path() / "log.json");
  EXPECT_EQ(refusal(folder.path()), "accepted");
  put(folder.path() / "request.json", "{}");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("request.json: key 'statistics_version' is missing"));
}

TEST(RunFolder, ASecondProcessIsRefusedWithTheFirstOnesId) {
  const TemporaryFolder folder;
  const auto run = RunFolder::open_or_resume(folder.path(), made_request());
  const std::string expected = fmt::format("process {} is writing this run; wait until it ends", ::getpid());
  EXPECT_THAT(refusal(folder.path()), HasSubstr(expected));
  const int status = in_child([&] { return refusal(folder.path()).find(expected) == std::string::npos ? 3 : 0; });
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

/// Holds the lock of a reader for a while, in a thread.
std::thread reader_of(const fs::path& folder, std::chrono::milliseconds time) {
  FileDescriptor file(::open((folder / "lock").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(::flock(file.get(), LOCK_SH), 0);
  return std::thread([file = std::move(file), time] { std::this_thread::sleep_for(time); });
}

TEST(RunFolder, AReaderThatLooksForAMomentIsWaitedFor) {
  const TemporaryFolder folder;
  make_run(folder.path(), made_request());
  std::thread brief = reader_of(folder.path(), std::chrono::milliseconds(30));
  EXPECT_EQ(refusal(folder.path()), "accepted");
  brief.join();
  std::thread lasting = reader_of(folder.path(), std::chrono::seconds(2));
  EXPECT_THAT(refusal(folder.path()), HasSubstr("is writing this run"));
  lasting.join();
}

TEST(RunFolder, TheLockGoesWithTheProcess) {
  const TemporaryFolder folder;
  in_child([&]() -> int {
    const auto run = RunFolder::open_or_resume(folder.path(), made_request());
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(refusal(folder.path()), "accepted");
}

TEST(RunFolder, ATornManifestLineIsDroppedAndItsShardHashedAgain) {
  const TemporaryFolder folder;
  make_run(folder.path(), made_request());
  const fs::path path = folder.path() / "manifest.jsonl";
  const std::string whole = read_text_file(path);
  for (const std::string& torn : {whole.substr(0, whole.size() - 1), whole.substr(0, whole.size() - 30),
                                  whole + "{\"length", whole + std::string(20, '\0') + "\n", std::string()}) {
    put(path, torn);
    EXPECT_THAT(RunFolder::open_or_resume(folder.path(), made_request()).missing(), IsEmpty());
    EXPECT_EQ(read_text_file(path).size(), whole.size());
  }
}

TEST(RunFolder, ADamagedManifestIsNamedWithItsLine) {
  const TemporaryFolder folder;
  make_run(folder.path(), made_request());
  const fs::path path = folder.path() / "manifest.jsonl";
  const std::string whole = read_text_file(path);
  put(path, "{\"length\":8}\n" + whole);
  EXPECT_THAT(refusal(folder.path()),
              AllOf(HasSubstr("manifest.jsonl, line 1: is not a line of a manifest"),
                    HasSubstr("delete the file and repeat the command: the shards are then checked")));
  fs::remove(path);
  EXPECT_THAT(RunFolder::open_or_resume(folder.path(), made_request()).missing(), IsEmpty());
}

TEST(RunFolder, AChangedShardIsNamedAndComputedAgainOnceDeleted) {
  const TemporaryFolder folder;
  make_run(folder.path(), made_request());
  const std::string digest = sha256_file(folder.path() / "run.h5");
  const fs::path shard = folder.path() / "shards/T24-S1.h5";
  const std::string shard_digest = sha256_file(shard);
  flip_byte(shard, fs::file_size(shard) - 100);
  EXPECT_THAT(refusal(folder.path()),
              AllOf(HasSubstr("shards/T24-S1.h5: its sha256 is " + sha256_file(shard)),
                    HasSubstr("manifest.jsonl says " + shard_digest), HasSubstr("delete it and repeat the command")));
  fs::remove(shard);
  EXPECT_THAT(RunFolder::open_or_resume(folder.path(), made_request()).missing(), ElementsAre(ShardKey{24, 1}));
  make_run(folder.path(), made_request());
  EXPECT_EQ(sha256_file(folder.path() / "run.h5"), digest);
}

TEST(RunFolder, AnUnlistedShardMustBeWholeAndOfThisRequest) {
  const TemporaryFolder folder;
  make_run(folder.path(), made_request());
  const fs::path shard = folder.path() / "shards/T24-S1.h5";
  const std::string bytes = read_text_file(shard);
  const auto refused = [&] {
    fs::remove(folder.path() / "manifest.jsonl");
    return refusal(folder.path());
  };
  put(shard, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(refused(), AllOf(HasSubstr("T24-S1.h5: is not in manifest.jsonl and is no shard of this run"),
                               HasSubstr("and the file has")));
  fs::copy_file(folder.path() / "shards/T8-S1.h5", shard, fs::copy_options::overwrite_existing);
  EXPECT_THAT(refused(), HasSubstr("it holds another length or sample than its name says"));
  const TemporaryFolder other;
  Request other_request = made_request();
  other_request.threads = 9;
  make_run(other.path(), other_request);
  fs::copy_file(other.path() / "shards/T24-S1.h5", shard, fs::copy_options::overwrite_existing);
  EXPECT_THAT(refused(), HasSubstr("it was made for another request"));
  fs::copy_file(folder.path() / "run.h5", shard, fs::copy_options::overwrite_existing);
  EXPECT_THAT(refused(), HasSubstr("it is not a shard of this format version"));
  put(shard, bytes);
  EXPECT_EQ(refused(), "accepted");
  put(folder.path() / "shards/T9-S0.h5", bytes);
  EXPECT_THAT(refused(), HasSubstr("T9-S0.h5: is no shard of this run's request; move it out of the folder"));
}

TEST(RunFolder, LeftOversOfAKilledProcessAreRemoved) {
  const TemporaryFolder folder;
  make_run(folder.path(), made_request());
  const char* const names[] = {"run.h5.tmp",
                               "log.json.tmp",
                               "manifest.jsonl.tmp",
                               "request.json.tmp",
                               ".writable.aB3xYz",
                               "shards/T24-S1.h5.tmp",
                               "shards/T24-S1.h5.17@host-0123456789abcdef.tmp"};
  for (const char* name : names) put(folder.path() / name, "half");
  EXPECT_EQ(refusal(folder.path()), "accepted");
  for (const char* name : names) EXPECT_FALSE(fs::exists(folder.path() / name)) << name;
}

TEST(RunFolder, FilesOfOtherNamesStay) {
  const TemporaryFolder folder, elsewhere;
  make_run(folder.path() / "run", made_request());
  const fs::path run = folder.path() / "run";
  // The shards lie on another disk.
  fs::copy(run / "shards", elsewhere.path() / "shards");
  fs::remove_all(run / "shards");
  fs::create_directory_symlink(elsewhere.path() / "shards", run / "shards");
  const char* const names[] = {"thesis.tmp", ".writable.notes", "shards/thesis.tmp", "shards/T24.h5.tmp",
                               "shards/T24-S1.h5.tmp.gz"};
  for (const char* name : names) put(run / name, "mine");
  EXPECT_EQ(refusal(run), "accepted");
  for (const char* name : names) EXPECT_TRUE(fs::exists(run / name)) << name;
}

TEST(RunFolder, AListedChunkThatIsNoneOfTheRunIsRefused) {
  const TemporaryFolder folder;
  make_run(folder.path(), made_request());
  const fs::path path = folder.path() / "manifest.jsonl";
  const std::string whole = read_text_file(path);
  for (const std::string& key : {std::string(R"("length":9,"sample":1)"), std::string(R"("length":24,"sample":2)"),
                                 std::string(R"("length":24,"sample":-1)")}) {
    std::string changed = whole;
    const std::string right = R"("length":24,"sample":1)";
    changed.replace(changed.find(right), right.size(), key);
    put(path, changed);
    EXPECT_THAT(refusal(folder.path()),
                AllOf(HasSubstr("manifest.jsonl: lists the chunk of "), HasSubstr("which is not one of this run"),
                      HasSubstr("delete the file and repeat the sweep command")))
        << key;
    fs::remove(path);  // as the message says
    EXPECT_THAT(RunFolder::open_or_resume(folder.path(), made_request()).missing(), IsEmpty());
    EXPECT_EQ(read_text_file(path), whole);
  }
}

}  // namespace run_folder_test
}  // namespace gainlens::runfile
