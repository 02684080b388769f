#include "formats/mapped_file.h"

#include "core/json.h"

#include "formats/safetensors_bytes.h"

#include <sys/stat.h>

namespace gainlens::formats {
namespace mapped_file_test {

using testing::TemporaryFolder;

TEST(MappedFile, GivesTheContent) {
  const TemporaryFolder folder;
  const auto file = MappedFile::open(write_bytes(folder.path() / "f", "abc"));
  ASSERT_EQ(file->bytes().size(), 3u);
  EXPECT_EQ(file->bytes()[2], std::byte{'c'});
}

TEST(MappedFile, ReleasedPagesComeBackFromTheFile) {
  const TemporaryFolder folder;
  const std::string text(100'000, 'x');
  const auto file = MappedFile::open(write_bytes(folder.path() / "f", text));
  EXPECT_EQ(file->bytes()[50'000], std::byte{'x'});
  release_pages(file->bytes().subspan(10));
  release_pages(file->bytes().first(1));  // less than a page: nothing to release
  EXPECT_EQ(file->bytes()[50'000], std::byte{'x'});
}

TEST(MappedFile, EmptyFileHasNoBytes) {
  const TemporaryFolder folder;
  EXPECT_TRUE(MappedFile::open(write_bytes(folder.path() / "f", ""))->bytes().empty());
}

TEST(MappedFile, ReplacedByRenameKeepsTheOldContent) {
  const TemporaryFolder folder;
  const auto file = MappedFile::open(write_bytes(folder.path() / "f", "abc"));
  std::filesystem::rename(write_bytes(folder.path() / "g", ""), folder.path() / "f");
  EXPECT_EQ(file->bytes()[0], std::byte{'a'});
}

TEST(MappedFile, WhatIsNoFileIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { MappedFile::open(folder.path() / "lost"); }, refused_with("lost: no such file"));
  EXPECT_THAT([&] { MappedFile::open(folder.path()); }, refused_with(": a folder; give a file"));
  std::filesystem::create_symlink("../../blobs/0123", folder.path() / "dangling");
  EXPECT_THAT([&] { MappedFile::open(folder.path() / "dangling"); },
              refused_with("a link to '../../blobs/0123', which does not exist"));
  EXPECT_THAT([&] { MappedFile::open(write_bytes(folder.path() / "f", "x") / "below"); },
              refused_with("cannot be opened for reading: Not a directory"));
}

TEST(MappedFile, APointerOfGitLfsIsCalledWhatItIs) {
  const TemporaryFolder folder;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') + "\nsize 42\n";
  for (const char* name : {"model.safetensors", "model.gguf", "pytorch_model.bin"}) {
    EXPECT_THAT(
        [&] { MappedFile::open(write_bytes(folder.path() / name, pointer)); },
        refused_with(std::string(name) + ": a pointer of Git LFS, in place of the file itself; run 'git lfs pull'"));
  }
  EXPECT_THAT([&] { read_json_file(write_bytes(folder.path() / "tokenizer.json", pointer)); },
              refused_with("tokenizer.json: a pointer of Git LFS"));
  // A text about such pointers is longer.
  EXPECT_NO_THROW(MappedFile::open(write_bytes(folder.path() / "text", pointer + std::string(1024, ' '))));
}

TEST(MappedFile, NamedPipeIsRefusedWithoutWaiting) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_THAT([&] { MappedFile::open(folder.path() / "pipe"); }, refused_with("pipe: not a regular file"));
}

}  // namespace mapped_file_test
}  // namespace gainlens::formats
