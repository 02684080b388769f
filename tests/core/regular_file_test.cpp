#include "core/regular_file.h"

#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>

namespace gainlens {
namespace {

using ::testing::EndsWith;
using testing::refusal_of;

TEST(RegularFile, NothingElseIsOpened) {
  const testing::TemporaryFolder folder;
  const auto path = testing::write_file(folder.path() / "text", "abc");
  std::filesystem::create_symlink(path, folder.path() / "link");
  std::array<char, 8> bytes{};
  const FileDescriptor file = open_regular_file(folder.path() / "link");
  EXPECT_EQ(::read(file.get(), bytes.data(), bytes.size()), 3);

  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal_of([&] { open_regular_file(folder.path() / "pipe"); }),
              EndsWith("pipe: not a regular file; pipes and devices are not read here"));
  EXPECT_EQ(refusal_of([&] { open_regular_file("/dev/null"); }),
            "/dev/null: not a regular file; pipes and devices are not read here");
  EXPECT_THAT(refusal_of([&] { open_regular_file(folder.path()); }), EndsWith(": a folder; a file is needed here"));
  EXPECT_THAT(refusal_of([&] { open_regular_file(folder.path() / "lost"); }), EndsWith("lost: no such file"));
}

TEST(RegularFile, TheReasonIsGivenWithoutTheName) {
  const testing::TemporaryFolder folder;
  std::string reason;
  EXPECT_LT(try_open_regular_file(folder.path() / "lost", reason).get(), 0);
  EXPECT_EQ(reason, "no such file");
  EXPECT_GE(try_open_regular_file(testing::write_file(folder.path() / "text", ""), reason).get(), 0);
}

}  // namespace
}  // namespace gainlens
