#include "runfile/checksums.h"

#include "core/error.h"
#include "core/json.h"
#include "core/sha256.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

namespace gainlens::runfile {
namespace hash_cache_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;

void put(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// An hour after the files of the tests were written, so that they count as settled.
std::time_t in_an_hour() {
  return std::time(nullptr) + 3600;
}

const std::string forged(64, '0');

class HashCacheTest : public ::testing::Test {
 protected:
  /// A new object each time, as in another process.
  HashCache cache() const { return HashCache(folder_, in_an_hour); }
  Json stored() const { return read_json_file(folder_ / "checksums.json"); }
  void store(const Json& entries) const { put(folder_ / "checksums.json", entries.dump()); }
  /// Changes every checksum in the cache, so that a test can tell a stored one from a computed one.
  void forge() const {
    Json entries = stored();
    for (auto& [path, entry] : entries.items()) entry["sha256"] = forged;
    store(entries);
  }
  /// Puts the file "abc" into the cache with a forged checksum.
  void remember_forged() const {
    put(file_, "abc");
    ASSERT_EQ(cache().sha256(file_), sha256_hex("abc"));
    forge();
    ASSERT_EQ(cache().sha256(file_), forged);
  }

  TemporaryFolder place_;
  fs::path folder_ = place_.path() / "cache" / "gainlens", file_ = place_.path() / "weights";
};

TEST_F(HashCacheTest, HashesAFileOnceWhileItIsTheSame) {
  remember_forged();
  EXPECT_EQ(cache().sha256(place_.path() / "." / "weights"), forged);
  EXPECT_EQ(cache().sha256_by_name({file_}), (std::map<std::string, std::string>{{"weights", forged}}));
}

TEST_F(HashCacheTest, AChangedFileIsHashedAgain) {
  remember_forged();
  const auto time = fs::last_write_time(file_);
  put(file_, "abcd");
  EXPECT_EQ(cache().sha256(file_), sha256_hex("abcd"));

  remember_forged();
  put(file_, "xyz");
  fs::last_write_time(file_, time);  // only the ctime shows that the file is another
  EXPECT_EQ(cache().sha256(file_), sha256_hex("xyz"));
  EXPECT_EQ(cache().sha256(file_), sha256_hex("xyz"));
}

TEST_F(HashCacheTest, EveryPartOfTheSignatureCounts) {
  remember_forged();
  const Json good = stored();
  const Json signature = good.begin()->at("file");
  EXPECT_EQ(signature.size(), 5u);
  for (const auto& [part, value] : signature.items()) {
    Json other = good;
    other.begin()->at("file")[part] = value.get<std::int64_t>() + 1;
    store(other);
    EXPECT_EQ(cache().sha256(file_), sha256_hex("abc")) << part;
  }
}

TEST_F(HashCacheTest, AFileJustWrittenIsNotRemembered) {
  put(file_, "abc");
  EXPECT_EQ(HashCache(folder_).sha256(file_), sha256_hex("abc"));
  fs::last_write_time(file_, fs::file_time_type::clock::now() - std::chrono::hours(1));  // its ctime is new
  EXPECT_EQ(HashCache(folder_).sha256(file_), sha256_hex("abc"));
  EXPECT_FALSE(fs::exists(folder_ / "checksums.json"));
}

TEST_F(HashCacheTest, DamagedCachesAreIgnoredAndReplaced) {
  remember_forged();
  const std::string path = file_.string();
  const Json good = stored().at(path);
  for (const std::string& bytes : {std::string(), std::string("{"), std::string("[7]"), std::string("\0\xff", 2),
                                   Json{{path, 7}}.dump(), stored().dump().substr(1)}) {
    put(folder_ / "checksums.json", bytes);
    EXPECT_EQ(cache().sha256(file_), sha256_hex("abc")) << bytes;
    EXPECT_EQ(stored().at(path).at("sha256"), sha256_hex("abc"));
  }
  for (const auto& [key, value] : std::map<std::string, Json>{
           {"sha256", "short"}, {"sha256", std::string(64, 'g')}, {"file", 3}, {"hashed_at", "today"}}) {
    Json bad = good;
    bad[key] = value;
    store({{path, bad}});
    EXPECT_EQ(cache().sha256(file_), sha256_hex("abc")) << key;
  }
}

TEST_F(HashCacheTest, WorksWithoutAPlaceForTheCache) {
  put(file_, "abc");
  EXPECT_EQ(HashCache(std::nullopt, in_an_hour).sha256(file_), sha256_hex("abc"));
  // Only the last two folders are made.
  EXPECT_EQ(HashCache(place_.path() / "no" / "such" / "place", in_an_hour).sha256(file_), sha256_hex("abc"));
  EXPECT_FALSE(fs::exists(place_.path() / "no"));
  // A file where the folder should be.
  EXPECT_EQ(HashCache(file_, in_an_hour).sha256(file_), sha256_hex("abc"));
  // A folder where the file should be: nothing can be written there, also not by root.
  fs::create_directories(folder_ / "checksums.json");
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_EQ(cache().sha256(file_), sha256_hex("abc"));
  EXPECT_FALSE(fs::exists(folder_ / "checksums.json.tmp"));
}

TEST_F(HashCacheTest, AFolderThatIsReadOnlyIsReadOnly) {
  if (::geteuid() == 0) GTEST_SKIP() << "SKIPPED: root may write everywhere";
  remember_forged();
  const fs::path other = place_.path() / "other";
  put(other, "def");
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(cache().sha256(file_), forged);
  EXPECT_EQ(cache().sha256(other), sha256_hex("def"));
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_EQ(stored().size(), 1u);
}

TEST_F(HashCacheTest, AFolderThatOthersMayWriteIsNotTrusted) {
  remember_forged();
  for (const fs::perms others : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(folder_, fs::perms::owner_all | others);
    EXPECT_EQ(cache().sha256(file_), sha256_hex("abc"));
  }
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_EQ(cache().sha256(file_), forged);
}

TEST_F(HashCacheTest, ItsFoldersArePrivate) {
  put(file_, "abc");
  cache().sha256(file_);
  for (const fs::path& folder : {folder_, folder_.parent_path()}) {
    EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all) << folder;
  }
}

TEST_F(HashCacheTest, TheOldestEntriesAreDropped) {
  remember_forged();
  const Json entry = stored().begin().value();
  Json entries = Json::object();
  for (std::size_t i = 0; i < HashCache::max_files; ++i) {
    Json& one = entries["/weights/" + std::to_string(i)] = entry;
    one["hashed_at"] = i == 17 ? 5 : 6;
  }
  store(entries);
  EXPECT_EQ(cache().sha256(file_), sha256_hex("abc"));
  const Json kept = stored();
  EXPECT_EQ(kept.size(), HashCache::max_files);
  EXPECT_TRUE(kept.contains(file_.string()));
  EXPECT_FALSE(kept.contains("/weights/17"));
}

TEST_F(HashCacheTest, ProcessesAtTheSameTimeKeepTheEntriesOfEachOther) {
  constexpr int processes = 4, files = 6;
  const auto name = [&](int process, int file) {
    return place_.path() / (std::to_string(process) + "-" + std::to_string(file));
  };
  for (int process = 0; process < processes; ++process) {
    for (int file = 0; file < files; ++file) put(name(process, file), name(process, file).string());
  }
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool right = true;
      for (int file = 0; file < files; ++file) {
        right = right && cache().sha256(name(process, file)) == sha256_hex(name(process, file).string());
      }
      ::_exit(right ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(stored().size(), std::size_t{processes * files});
}

TEST_F(HashCacheTest, APathThatIsNotUtf8IsHashedEachTime) {
  remember_forged();
  for (const char* name : {"\xff", "\xfe"}) {
    put(place_.path() / name, name);
    EXPECT_EQ(cache().sha256(place_.path() / name), sha256_hex(name));
  }
  EXPECT_EQ(stored().size(), 1u);
}

TEST_F(HashCacheTest, LiesWhereTheEnvironmentSays) {
  const std::string xdg = place_.path() / "xdg", home = place_.path() / "home";
  fs::create_directory(home);
  put(file_, "abc");
  fs::last_write_time(file_, fs::file_time_type::clock::now() - std::chrono::hours(1));
  ::sleep(4);  // until its ctime counts as settled too
  const auto used = [&](std::map<std::string, std::string> variables) {
    const HashCache cache = HashCache::for_user([&](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      if (found == variables.end()) return std::nullopt;
      return found->second;
    });
    EXPECT_EQ(cache.sha256(file_), sha256_hex("abc"));
    std::string place;
    for (const auto& entry : fs::recursive_directory_iterator(place_.path())) {
      if (entry.path().filename() == "checksums.json") place += fs::relative(entry.path(), place_.path()).string();
    }
    fs::remove_all(xdg);
    fs::remove_all(home);
    fs::create_directory(home);
    return place;
  };
  EXPECT_EQ(used({{"XDG_CACHE_HOME", xdg}, {"HOME", home}}), "xdg/gainlens/checksums.json");
  EXPECT_EQ(used({{"XDG_CACHE_HOME", ""}, {"HOME", home}}), "home/.cache/gainlens/checksums.json");
  EXPECT_EQ(used({{"XDG_CACHE_HOME", "relative"}, {"HOME", home}}), "home/.cache/gainlens/checksums.json");
  EXPECT_EQ(used({{"HOME", home}}), "home/.cache/gainlens/checksums.json");
  EXPECT_EQ(used({{"HOME", "relative"}}), "");
  EXPECT_EQ(used({{"HOME", place_.path() / "nobody"}}), "");
  EXPECT_EQ(used({}), "");
}

TEST_F(HashCacheTest, AMissingFileIsNamed) {
  EXPECT_THAT([&] { cache().sha256("/nowhere/weights"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("/nowhere/weights: cannot be read: No such file")));
}

/// The bytes that this process has read from files.
std::uint64_t bytes_read() {
  std::ifstream counters("/proc/self/io");
  std::string name;
  std::uint64_t count = 0;
  while (counters >> name >> count && name != "rchar:") {
  }
  return count;
}

TEST(Sha256Once, ReadsAFileAgainOnlyIfItChanged) {
  constexpr std::size_t size = 1 << 20;
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "weights";
  const auto hashes = [&](const std::string& content, std::time_t now) {
    const std::uint64_t before = bytes_read();
    EXPECT_EQ(sha256_once(file, now), sha256_hex(content));
    return bytes_read() - before >= size;
  };
  const std::string one(size, 'a'), other(size, 'b');
  put(file, one);
  EXPECT_TRUE(hashes(one, std::time(nullptr))) << "a file that has just changed";
  EXPECT_TRUE(hashes(one, in_an_hour()));
  EXPECT_FALSE(hashes(one, in_an_hour()));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than a tick of the file system's clock
  const auto time = fs::last_write_time(file);
  put(file, other);
  fs::last_write_time(file, time);
  EXPECT_TRUE(hashes(other, in_an_hour()));
  fs::remove(file);
  EXPECT_THROW(sha256_once(file, in_an_hour()), InvalidArgument);
}

TEST(WatchedFiles, AnyChangeIsNamedAlsoWithItsTimeSetBack) {
  const TemporaryFolder folder;
  const fs::path weights = folder.path() / "weights", config = folder.path() / "config";
  put(weights, "one");
  put(config, "two");
  const auto time = fs::last_write_time(weights);
  const auto refusal = [&](const std::function<void()>& change) {
    const WatchedFiles files({config, weights});
    files.check();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than a tick of the file system's clock
    change();
    try {
      files.check();
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string expected = weights.string() + ": was changed while it was used";
  EXPECT_THAT(refusal([&] {
                put(weights, "eno");
                fs::last_write_time(weights, time);
              }),
              HasSubstr(expected));
  EXPECT_THAT(refusal([&] {
                put(folder.path() / "new", "eno");
                fs::last_write_time(folder.path() / "new", time);
                fs::rename(folder.path() / "new", weights);
              }),
              HasSubstr(expected));
  EXPECT_THAT(refusal([&] { fs::remove(weights); }), HasSubstr("weights: cannot be read: No such file"));
  WatchedFiles().check();
}

}  // namespace hash_cache_test
}  // namespace gainlens::runfile
