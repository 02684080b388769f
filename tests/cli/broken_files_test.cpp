// Some of the broken model files of tests/formats, given on the command line. Each must end with one line on stderr and
// exit code 2.
#include "cli/tiny_checkpoint.h"
#include "support/file_bytes.h"
#include "support/gguf_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace gainlens::testing {
namespace broken_files_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void expect_refused(const std::filesystem::path& model, const std::string& file) {
  const ProgramResult result = run_gainlens({"inspect", model.string()});
  EXPECT_EQ(result.exit_code, 2) << result.error;
  EXPECT_THAT(result.error, StartsWith("gainlens: error: " + file + ": "));
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
}

TEST(InspectBrokenGguf, EveryNumberOfTheHeaderTooLarge) {
  const TemporaryFolder folder;
  GgufBytes gguf;
  gguf.add("general.architecture", "llama").add_list("tokens", std::vector<std::string>{"a"});
  gguf.tensor("w", {2, 16}, std::vector<float>(32));
  const auto path = folder.path() / "m.gguf";
  int mutants = 0;
  for (const GgufField& field : gguf.fields()) {
    if (field.name.ends_with("name") || field.name.ends_with("value") || field.name.ends_with("element"))
      continue;  // texts
    SCOPED_TRACE(field.name);
    std::string bytes = gguf.bytes();
    bytes.replace(field.offset, field.bytes, field.bytes, '\xff');
    std::ofstream(path, std::ios::binary) << bytes;
    expect_refused(path, path);
    ++mutants;
  }
  EXPECT_GT(mutants, 15);
}

TEST(InspectBrokenGguf, CutShort) {
  const TemporaryFolder folder;
  GgufBytes gguf;
  const std::string bytes =
      gguf.add("general.architecture", "llama").tensor("w", {2, 16}, std::vector<float>(32)).bytes();
  const auto path = folder.path() / "m.gguf";
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{3}, std::size_t{20}, std::size_t{60}, bytes.size() / 2, bytes.size() - 1}) {
    SCOPED_TRACE(size);
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    expect_refused(path, path);
  }
}

TEST(InspectBrokenSafetensors, ASampleOfBytesOfTheHeader) {
  const TemporaryFolder folder;
  const auto model = copy_checkpoint(folder.path());
  const auto file = model / "model.safetensors";
  const std::string good = bytes_of(file);
  const std::size_t begin = good.find("data_offsets");
  ASSERT_NE(begin, std::string::npos);
  for (const std::size_t place : {std::size_t{0}, std::size_t{7}, std::size_t{8}, begin, begin + 14, begin + 15}) {
    SCOPED_TRACE(place);
    std::string bytes = good;
    bytes[place] = '\xff';
    std::ofstream(file, std::ios::binary) << bytes;
    expect_refused(model, file);
  }
  std::ofstream(file, std::ios::binary) << good.substr(0, good.size() - 1);
  expect_refused(model, file);
}

}  // namespace broken_files_test
}  // namespace gainlens::testing
