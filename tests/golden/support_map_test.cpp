#include "golden/support_map.h"

#include "core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::golden {
namespace support_map_test {

using ::testing::HasSubstr;

TEST(SupportMap, IsWhatTheCommandsDo) {
  const SupportMap map = measure_support();
  EXPECT_THAT(map.complaints, ::testing::IsEmpty());
  for (const auto& [what, share] : map.worst) std::printf("%-28s %.2g of the tolerance\n", what.c_str(), share);
  const std::string page = read_text_file(GAINLENS_SOURCE_DIR "/docs/models.md", 1 << 20);
  const std::size_t begin = page.find(support_heading);
  ASSERT_NE(begin, std::string::npos);
  EXPECT_EQ(page.substr(begin, page.find("\n## ", begin) - begin), support_section(map))
      << "run build/tests/golden/golden_table docs/models.md";
}

TEST(SupportMap, FamiliesWithTheSameSignsShareARow) {
  SupportMap map;
  map.states[{"bloom", "inspect", false, "float32"}] = Support::exact;
  const std::string text = support_section(map);
  EXPECT_THAT(text, HasSubstr("\n| AFMoE; Cohere 2; "));
  EXPECT_THAT(text, HasSubstr("\n| BLOOM | =·· / ··· | ··· / ··· |"));
}

}  // namespace support_map_test
}  // namespace gainlens::golden
