#include "core/scratch_folder.h"

#include "core/error.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>

namespace gainlens {
namespace scratch_folder_test {

TEST(ScratchFolder, GoesWithTheObject) {
  const testing::TemporaryFolder parent;
  std::filesystem::path first;
  {
    const ScratchFolder one(parent.path(), ".work-"), other(parent.path(), ".work-");
    first = one.path();
    EXPECT_NE(one.path(), other.path());
    EXPECT_EQ(one.path().parent_path(), parent.path());
    EXPECT_TRUE(one.path().filename().string().starts_with(".work-"));
    std::filesystem::create_directories(one.path() / "a" / "b");
    std::ofstream(one.path() / "a" / "file") << "text";
  }
  EXPECT_FALSE(std::filesystem::exists(first));
  EXPECT_TRUE(std::filesystem::is_empty(parent.path()));
}

TEST(ScratchFolder, ThoseOfDeadProcessesAreRemoved) {
  const testing::TemporaryFolder parent;
  const auto there = [&](const char* name) { return std::filesystem::exists(parent.path() / name); };
  const ScratchFolder alive(parent.path(), ".work-");
  for (const char* name : {".work-AbC123", ".work-notes", ".other-AbC123"})
    std::filesystem::create_directories(parent.path() / name / "a");
  std::ofstream(parent.path() / ".work-AbC124") << "a file, not a folder";
  std::filesystem::create_directory_symlink(parent.path() / ".work-notes", parent.path() / ".work-AbC125");
  remove_abandoned_folders(parent.path(), ".work-");
  EXPECT_FALSE(there(".work-AbC123"));
  for (const char* name : {".work-notes/a", ".other-AbC123/a", ".work-AbC124", ".work-AbC125"})
    EXPECT_TRUE(there(name));
  EXPECT_TRUE(std::filesystem::exists(alive.path()));
  remove_abandoned_folders(parent.path() / "absent", ".work-");  // nothing to do
}

TEST(ScratchFolder, AKilledProcessLeavesAnAbandonedOne) {
  const testing::TemporaryFolder parent;
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const ScratchFolder folder(parent.path(), ".work-");
    [[maybe_unused]] const ssize_t written = ::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char made = 0;
  ASSERT_EQ(::read(ready[0], &made, 1), 1);
  remove_abandoned_folders(parent.path(), ".work-");
  EXPECT_FALSE(std::filesystem::is_empty(parent.path())) << "its process lives";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  remove_abandoned_folders(parent.path(), ".work-");
  EXPECT_TRUE(std::filesystem::is_empty(parent.path()));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(ScratchFolder, SaysWhereItCannotBeMade) {
  const testing::TemporaryFolder parent;
  EXPECT_THAT(
      [&] { ScratchFolder(parent.path() / "absent", "x"); },
      ::testing::ThrowsMessage<RunFailed>(::testing::HasSubstr("absent: no temporary folder can be made in it")));
}

}  // namespace scratch_folder_test
}  // namespace gainlens
