// No line of code is longer than 120 columns, but for test texts and patterns that are one literal of escapes.
#include "architecture/repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::testing {
namespace {

constexpr std::size_t columns = 120;

/// Characters of UTF-8, not bytes.
std::size_t width(const std::string& text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

TEST(Format, NoLineOfCodeIsLongerThan120Columns) {
  std::vector<std::string> found;
  for (const SourceLine& line :
       lines_of(GAINLENS_SOURCE_DIR, {".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake", "CMakeLists.txt"})) {
    const bool escapes = line.file.ends_with(".py") && line.text.find('\\') != std::string::npos;
    if (width(line.text) > columns && !escapes) found.push_back(line.place() + ": " + std::to_string(width(line.text)));
  }
  EXPECT_THAT(found, ::testing::IsEmpty());
}

}  // namespace
}  // namespace gainlens::testing
