#include "core/sha256.h"

#include "core/error.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

namespace gainlens {
namespace sha256_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Test vectors of FIPS 180-2, appendix B, and the empty message.
constexpr const char* empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* two_blocks = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
constexpr const char* million_a = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Sha256, KnownVectors) {
  EXPECT_EQ(sha256_hex(""), empty);
  EXPECT_EQ(sha256_hex("abc"), abc);
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), two_blocks);
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')), million_a);
}

TEST(Sha256, PiecesGiveTheSameAsTheWhole) {
  Sha256 hash;
  hash.update("a");
  hash.update("");
  hash.update("bc");
  Sha256 moved = std::move(hash);
  EXPECT_EQ(moved.hex(), abc);
}

TEST(Sha256, FileLargerThanTheBuffer) {
  const testing::TemporaryFolder folder;
  const std::string content(3'000'001, 'a');
  std::ofstream(folder.path() / "a", std::ios::binary) << content;
  std::ofstream(folder.path() / "empty", std::ios::binary);
  EXPECT_EQ(sha256_file(folder.path() / "a"), sha256_hex(content));
  EXPECT_EQ(sha256_file(folder.path() / "empty"), empty);
}

TEST(Sha256, FileThatCannotBeReadIsNamed) {
  const testing::TemporaryFolder folder;
  EXPECT_THAT([&] { sha256_file(folder.path() / "lost"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("lost: no such file")));
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(
      [&] { sha256_file(folder.path() / "pipe"); },
      ThrowsMessage<InvalidArgument>(HasSubstr("pipe: not a regular file; pipes and devices are not read here")));
  EXPECT_THAT([&] { sha256_file(folder.path()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("a folder; a file is needed here")));
}

}  // namespace sha256_test
}  // namespace gainlens
