#include "core/scratch_folder.h"

#include "core/error.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace gainlens {
namespace {

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

TEST(ScratchFolder, SaysWhereItCannotBeMade) {
  const testing::TemporaryFolder parent;
  EXPECT_THAT(
      [&] { ScratchFolder(parent.path() / "absent", "x"); },
      ::testing::ThrowsMessage<RunFailed>(::testing::HasSubstr("absent: no temporary folder can be made in it")));
}

}  // namespace
}  // namespace gainlens
