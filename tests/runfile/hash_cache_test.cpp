#include "runfile/hash_cache.h"

#include "core/error.h"
#include "core/json.h"
#include "core/sha256.h"
#include "runfile/made_run.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;

void put(const fs::path& path, std::string_view text, std::chrono::seconds age) {
  std::ofstream(path, std::ios::binary) << text;
  fs::last_write_time(path, fs::file_time_type::clock::now() - age);
}

constexpr std::chrono::seconds old{3600};

/// A cache in which every known file has a checksum of zeros, so that a test can recognise a hit.
HashCache with_marked_entries(const HashCache& cache) {
  Json json = cache.to_json();
  for (auto& [path, entry] : json.items()) entry["sha256"] = std::string(64, '0');
  return HashCache::from_json(json);
}

TEST(HashCache, HashesAFileOnceWhileItIsTheSame) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "weights";
  put(file, "abc", old);
  HashCache cache;
  EXPECT_EQ(cache.sha256(file), sha256_hex("abc"));
  cache = with_marked_entries(cache);
  EXPECT_EQ(cache.sha256(file), std::string(64, '0'));
  EXPECT_EQ(cache.sha256(folder.path() / "." / "weights"), std::string(64, '0'));
}

TEST(HashCache, SizeTimeAndInodeEachCount) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "weights";
  put(file, "abc", old);
  HashCache cache;
  cache.sha256(file);
  const HashCache marked = with_marked_entries(cache);

  HashCache by_time = marked;
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(1));
  EXPECT_EQ(by_time.sha256(file), sha256_hex("abc"));
  HashCache by_size = marked;
  put(file, "abcd", old);
  EXPECT_EQ(by_size.sha256(file), sha256_hex("abcd"));

  cache.sha256(file);
  HashCache by_inode = with_marked_entries(cache);
  const auto time = fs::last_write_time(file);
  put(folder.path() / "other", "wxyz", old);
  fs::last_write_time(folder.path() / "other", time);
  fs::rename(folder.path() / "other", file);
  EXPECT_EQ(by_inode.sha256(file), sha256_hex("wxyz"));
}

TEST(HashCache, AFileJustWrittenIsNotRemembered) {
  const TemporaryFolder folder;
  put(folder.path() / "weights", "abc", std::chrono::seconds(0));
  HashCache cache;
  EXPECT_EQ(cache.sha256(folder.path() / "weights"), sha256_hex("abc"));
  EXPECT_TRUE(cache.to_json().empty());
}

TEST(HashCache, IsKeptInTheRunsLog) {
  const TemporaryFolder folder;
  put(folder.path() / "weights", "abc", old);
  const fs::path out = folder.path() / "run";
  HashCache cache = HashCache::of_run(out);
  cache.sha256(folder.path() / "weights");
  {
    auto run = RunFolder::open_or_resume(out, testing::made_request());
    run.remember(with_marked_entries(cache));
  }
  EXPECT_EQ(HashCache::of_run(out).sha256(folder.path() / "weights"), std::string(64, '0'));
}

TEST(HashCache, EntriesOfAnotherShapeAreHashedAgain) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "weights";
  put(file, "abc", old);
  for (const Json& entry :
       {Json(7), Json::object(), Json{{"sha256", "short"}}, Json{{"sha256", std::string(64, '0')}}}) {
    HashCache cache = HashCache::from_json({{file.string(), entry}});
    EXPECT_EQ(cache.sha256(file), sha256_hex("abc"));
  }
}

TEST(HashCache, AMissingFileIsNamed) {
  HashCache cache;
  EXPECT_THAT([&] { cache.sha256("/nowhere/weights"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("/nowhere/weights: cannot be read: No such file")));
}

}  // namespace
}  // namespace gainlens::runfile
