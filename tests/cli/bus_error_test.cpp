#include "cli/program_start.h"

#include "formats/mapped_file.h"
#include "support/shared_data.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace gainlens::cli {
namespace bus_error_test {

TEST(BusErrorDeathTest, ShortenedFileIsOneLineAndExitCodeTwo) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "model";
  std::ofstream(path) << std::string(1 << 16, 'x');
  const auto read_shortened = [&] {
    explain_bus_errors();
    const auto file = formats::MappedFile::open(path);
    std::filesystem::resize_file(path, 1);
    const volatile std::byte last = file->bytes().back();
    (void)last;
  };
  EXPECT_EXIT(read_shortened(), ::testing::ExitedWithCode(2),
              "^gainlens: error: a mapped file was shortened while it was read, or its disk failed; [^\n]*\n$");
}

TEST(BusErrorDeathTest, SignalFromOutsideStillKills) {
  EXPECT_EXIT((explain_bus_errors(), ::raise(SIGBUS)), ::testing::KilledBySignal(SIGBUS), "^$");
}

}  // namespace bus_error_test
}  // namespace gainlens::cli
