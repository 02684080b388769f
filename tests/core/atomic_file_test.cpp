#include "core/atomic_file.h"

#include "core/error.h"
#include "core/json.h"
#include "support/file_size_limit.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace gainlens {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

auto files_in(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

TEST(WriteFileAtomically, CreatesAndReplaces) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "manifest.json";
  write_file_atomically(path, "old");
  EXPECT_EQ(read_text_file(path), "old");
  write_file_atomically(path, std::string("n\0w", 3));
  EXPECT_EQ(read_text_file(path), std::string("n\0w", 3));
  write_file_atomically(path, "");
  EXPECT_EQ(read_text_file(path), "");
  EXPECT_EQ(files_in(folder.path()), 1);
}

TEST(WriteFileAtomically, MissingFolderIsNamed) {
  const testing::TemporaryFolder folder;
  EXPECT_THAT(
      [&] { write_file_atomically(folder.path() / "no\nfolder" / "f", "x"); },
      ThrowsMessage<InvalidArgument>(HasSubstr("no\\x0afolder/f: cannot be written: No such file or directory")));
}

TEST(WriteFileAtomically, FullDiskKeepsTheOldFileAndLeavesNothing) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "f";
  write_file_atomically(path, "old");
  {
    const testing::FileSizeLimit limit(1000);
    EXPECT_THAT([&] { write_file_atomically(path, std::string(5000, 'x')); },
                ThrowsMessage<RunFailed>(HasSubstr("f: cannot be written: File too large")));
  }
  EXPECT_EQ(read_text_file(path), "old");
  EXPECT_EQ(files_in(folder.path()), 1);
}

TEST(WriteFileAtomically, FailedRenameLeavesNothing) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "f");
  EXPECT_THAT([&] { write_file_atomically(folder.path() / "f", "x"); },
              ThrowsMessage<RunFailed>(HasSubstr("cannot be renamed to")));
  EXPECT_EQ(files_in(folder.path()), 1);
}

TEST(PublishFile, MovesIntoPlace) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "run.tmp") << "x";
  publish_file(folder.path() / "run.tmp", folder.path() / "run.h5");
  EXPECT_EQ(read_text_file(folder.path() / "run.h5"), "x");
  EXPECT_EQ(files_in(folder.path()), 1);
  EXPECT_THAT([&] { publish_file(folder.path() / "run.tmp", folder.path() / "run.h5"); },
              ThrowsMessage<RunFailed>(HasSubstr("run.tmp: cannot be flushed to disk: No such file")));
}

TEST(TemporaryFile, UnpublishedIsRemoved) {
  const testing::TemporaryFolder folder;
  {
    const TemporaryFile file(folder.path() / "f");
    EXPECT_EQ(file.path(), folder.path() / "f.tmp");
    std::ofstream(file.path()) << "half";
  }
  EXPECT_EQ(files_in(folder.path()), 0);
}

TEST(TemporaryFile, PublishedStays) {
  const testing::TemporaryFolder folder;
  {
    TemporaryFile file(folder.path() / "f");
    std::ofstream(file.path()) << "whole";
    file.publish();
    std::ofstream(file.path()) << "of somebody else";
  }
  EXPECT_EQ(read_text_file(folder.path() / "f"), "whole");
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "f.tmp"));  // belongs to somebody else, so it is not removed
}

TEST(EnsureWritableFolder, CreatesParentsAndLeavesNoProbe) {
  const testing::TemporaryFolder folder;
  ensure_writable_folder(folder.path() / "a" / "b");
  ensure_writable_folder(folder.path() / "a" / "b");  // an existing folder is accepted
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "a" / "b"));
  EXPECT_EQ(files_in(folder.path() / "a" / "b"), 0);
}

TEST(EnsureWritableFolder, WhatCannotBeAFolderIsNamed) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  EXPECT_THAT([&] { ensure_writable_folder(folder.path() / "file"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("file: cannot be used as an output folder")));
  EXPECT_THAT([&] { ensure_writable_folder(folder.path() / "file" / "below"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("Not a directory")));
  EXPECT_THAT([&] { ensure_writable_folder(folder.path() / std::string(300, 'n')); },
              ThrowsMessage<InvalidArgument>(HasSubstr("File name too long")));
}

}  // namespace
}  // namespace gainlens
