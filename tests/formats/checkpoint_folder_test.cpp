#include "formats/importance_matrix.h"
#include "formats/safetensors_bytes.h"
#include "formats/tensor_file.h"

namespace gainlens::formats {
namespace checkpoint_folder_test {

using testing::TemporaryFolder;
using Path = std::filesystem::path;

/// A cache folder with these snapshots. Each file is a link into blobs, as a download makes it.
Path write_cache(const TemporaryFolder& folder, const std::vector<std::string>& snapshots,
                 const std::string& main = "") {
  const Path cache = folder.path() / "models--organisation--name";
  std::filesystem::create_directories(cache / "blobs");
  write_bytes(cache / "blobs" / "c0ffee", "{}");
  std::filesystem::create_directories(cache / "snapshots");
  for (const std::string& snapshot : snapshots) {
    std::filesystem::create_directories(cache / "snapshots" / snapshot);
    std::filesystem::create_symlink("../../blobs/c0ffee", cache / "snapshots" / snapshot / "config.json");
  }
  if (!main.empty()) {
    std::filesystem::create_directories(cache / "refs");
    write_bytes(cache / "refs" / "main", main);
  }
  return cache;
}

TEST(ResolveCheckpointFolder, FolderWithConfigIsItself) {
  const TemporaryFolder folder;
  write_bytes(folder.path() / "config.json", "{}");
  EXPECT_EQ(resolve_checkpoint_folder(folder.path()), folder.path());
}

TEST(ResolveCheckpointFolder, AnImportanceMatrixIsCalledWhatItIs) {
  const TemporaryFolder folder;
  // The number of entries, the length of the first name, the name.
  const std::string matrix = std::string("\x02\0\0\0\x13\0\0\0", 8) + "blk.0.attn_q.weight";
  EXPECT_THAT([&] { resolve_checkpoint_folder(write_bytes(folder.path() / "imatrix.dat", matrix)); },
              refused_with("imatrix.dat: an importance matrix (imatrix)"));
  EXPECT_TRUE(is_importance_matrix(folder.path() / "imatrix.dat"));
  for (const char* other : {"", "1 2\n1 3\n", "blk.0.attn_q.weight"})
    EXPECT_FALSE(is_importance_matrix(write_bytes(folder.path() / "table.dat", other))) << other;
  EXPECT_FALSE(is_importance_matrix(folder.path()));
}

TEST(ResolveCheckpointFolder, CacheByReference) {
  const TemporaryFolder folder;
  const Path cache = write_cache(folder, {"abc1", "abc2"}, "abc2\n");
  EXPECT_EQ(resolve_checkpoint_folder(cache), cache / "snapshots" / "abc2");
  EXPECT_EQ(resolve_checkpoint_folder(cache / "snapshots" / "abc1"), cache / "snapshots" / "abc1");
}

TEST(ResolveCheckpointFolder, CacheWithOneSnapshotNeedsNoReference) {
  const TemporaryFolder folder;
  const Path cache = write_cache(folder, {"abc1"});
  EXPECT_EQ(resolve_checkpoint_folder(cache), cache / "snapshots" / "abc1");
}

TEST(ResolveCheckpointFolder, SeveralSnapshotsWithoutReferenceAreNamed) {
  const TemporaryFolder folder;
  const Path cache = write_cache(folder, {"abc2", "abc1"});
  EXPECT_THAT([&] { resolve_checkpoint_folder(cache); },
              refused_with("2 snapshots and no refs/main; give the folder of one: abc1, abc2"));
}

TEST(ResolveCheckpointFolder, ReferenceThatLeadsNowhereIsRefused) {
  for (const std::string reference : {"abc9", "abc1/../abc1", "..", ".", "\n"}) {
    const TemporaryFolder folder;
    const Path cache = write_cache(folder, {"abc1"}, reference);
    EXPECT_THAT(
        [&] { resolve_checkpoint_folder(cache); },
        refused_with(reference == "abc9" ? "refs/main names snapshot 'abc9', which is not there; there are: abc1"
                                         : "is not the name of a snapshot"))
        << reference;
  }
}

TEST(ResolveCheckpointFolder, IncompleteCacheIsRefused) {
  const TemporaryFolder folder;
  const Path cache = write_cache(folder, {});
  EXPECT_THAT([&] { resolve_checkpoint_folder(cache); }, refused_with("a cache folder without snapshots"));
  std::filesystem::create_directory(cache / "snapshots" / "abc1");
  EXPECT_THAT([&] { resolve_checkpoint_folder(cache); }, refused_with("abc1: no config.json in this snapshot"));
}

TEST(ResolveCheckpointFolder, WhatIsNoCheckpointIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { resolve_checkpoint_folder(folder.path() / "lost"); }, refused_with("lost: no such folder"));
  EXPECT_THAT([&] { resolve_checkpoint_folder(write_bytes(folder.path() / "f", "")); },
              refused_with("f: a file; give the folder that holds config.json"));
  EXPECT_THAT([&] { resolve_checkpoint_folder(folder.path()); },
              refused_with(": no config.json; give a folder that holds one"));
}

}  // namespace checkpoint_folder_test
}  // namespace gainlens::formats
