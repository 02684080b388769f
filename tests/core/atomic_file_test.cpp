#include "core/atomic_file.h"

#include "core/error.h"
#include "core/json.h"
#include "support/file_size_limit.h"
#include "support/shared_data.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

namespace {
int folder_flush_error = 0;  ///< errno with which fsync() of a folder fails; 0: it works
}

/// In place of that of the C library.
extern "C" int fsync(int file) {
  struct stat status {};
  if (folder_flush_error != 0 && ::fstat(file, &status) == 0 && S_ISDIR(status.st_mode)) {
    errno = folder_flush_error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, file));
}

namespace gainlens {
namespace atomic_file_test {

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

TEST(WriteFileAtomically, AFolderThatCannotBeFlushedIsNoFailure) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "f";
  for (const int refusal : {EINVAL, ENOSYS, EOPNOTSUPP}) {  // what file systems say that cannot flush folders
    folder_flush_error = refusal;
    write_file_atomically(path, std::to_string(refusal));
    EXPECT_EQ(read_text_file(path), std::to_string(refusal));
  }
  folder_flush_error = EIO;
  EXPECT_THAT([&] { write_file_atomically(path, "x"); },
              ThrowsMessage<RunFailed>(HasSubstr("cannot be flushed to disk: Input/output error")));
  folder_flush_error = 0;
}

TEST(WriteFileAtomically, ALinkAtTheTemporaryNameIsReplaced) {
  const testing::TemporaryFolder folder;
  const auto precious = folder.path() / "precious";
  std::ofstream(precious) << "mine";
  std::filesystem::create_symlink(precious, folder.path() / "f.tmp");
  write_file_atomically(folder.path() / "f", "new");
  EXPECT_EQ(read_text_file(folder.path() / "f"), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(folder.path() / "f"));
  EXPECT_EQ(read_text_file(precious), "mine");

  std::filesystem::create_symlink(precious, folder.path() / "g.tmp");
  TemporaryFile file(folder.path() / "g");  // a library opens its path
  std::ofstream(file.path()) << "new";
  file.publish();
  EXPECT_EQ(read_text_file(precious), "mine");
  EXPECT_EQ(files_in(folder.path()), 3);
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

TEST(EnsureWritableFolder, ALinkToNothingSaysWhereItLeads) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_symlink("/nowhere/at all", folder.path() / "link");
  EXPECT_THAT([&] { ensure_writable_folder(folder.path() / "link"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("it is a link to /nowhere/at all, which is not there")));
}

TEST(EnsureWritableFolder, AKillLeavesNothing) {
  const testing::TemporaryFolder folder;
  if (FileDescriptor(::open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600)).get() < 0)
    GTEST_SKIP() << "SKIPPED: this file system has no files without a name";
  const FileDescriptor watch(::inotify_init1(IN_NONBLOCK));
  ASSERT_GE(::inotify_add_watch(watch.get(), folder.path().c_str(), IN_CREATE), 0);
  ensure_writable_folder(folder.path());
  char event[512];
  EXPECT_LT(::read(watch.get(), event, sizeof event), 0) << "a name was made in the folder";
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

}  // namespace atomic_file_test
}  // namespace gainlens
