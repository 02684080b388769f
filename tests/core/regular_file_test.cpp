#include "core/regular_file.h"

#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>

namespace gainlens {
namespace regular_file_test {

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

/// A socket that lies in the file system until the test ends.
class BoundSocket {
 public:
  explicit BoundSocket(const std::filesystem::path& path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }

 private:
  FileDescriptor socket_;
};

TEST(RegularFile, ASocketIsNone) {
  const testing::TemporaryFolder folder;
  const BoundSocket socket(folder.path() / "socket");
  EXPECT_THAT(refusal_of([&] { open_regular_file(folder.path() / "socket"); }),
              EndsWith("socket: not a regular file; pipes and devices are not read here"));
}

TEST(RegularFile, FilesFoldersAndWhatIsMissingMayBeAskedFor) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(refusal_of([&] { check_may_be_read(folder.path()); }), "accepted");
  EXPECT_EQ(refusal_of([&] { check_may_be_read(folder.path() / "lost"); }), "accepted");
  EXPECT_EQ(refusal_of([&] { check_may_be_read(testing::write_file(folder.path() / "text", "")); }), "accepted");
  EXPECT_EQ(refusal_of([&] { check_may_be_read("/dev/null"); }),
            "/dev/null: not a regular file; pipes and devices are not read here");
}

TEST(RegularFile, TheReasonIsGivenWithoutTheName) {
  const testing::TemporaryFolder folder;
  std::string reason;
  EXPECT_LT(try_open_regular_file(folder.path() / "lost", reason).get(), 0);
  EXPECT_EQ(reason, "no such file");
  EXPECT_GE(try_open_regular_file(testing::write_file(folder.path() / "text", ""), reason).get(), 0);
}

}  // namespace regular_file_test
}  // namespace gainlens
