#include "reports/terminal/generation_terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace generation_terminal_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Two heads of layer 1 and one of layer 4, at two queries; the last head sees no key at the second.
std::vector<HeadQueries> some_heads() {
  return {{1, 0, {1, 2}, {0.5F, 0.75F}, {0, 0.5F}, {1, 0.25F}},
          {1, 1, {3, 4}, {0.5F, 0.25F}, {1, 1}, {0.5F, 0}},
          {4, 0, {8, nan}, {0.5F, nan}, {2, nan}, {0, nan}}};
}

TEST(GenerationTerminal, ARowForEachToken) {
  const std::vector<AddedToken> tokens = {{" the", -0.25}, {"\x1b[31m", -1.5}};
  const std::string text = print_token_statistics(tokens, some_heads());
  EXPECT_EQ(text,
            "statistics  of the query that each token comes from: means over heads. Bars: layers from 1 to 4; a full "
            "bar of\n"
            "            n_eff is 8, one of BOS mass is 1\n"
            "token                  ln p     n_eff       K  entropy  BOS mass  n_eff  BOS\n"
            "' the'                -0.25      4.00   0.500     1.00     0.500  |▂█|  |▆ |\n"
            "'\\x1b[31m'            -1.50      3.00   0.500     0.75     0.125  |▃ |  |▁ |\n");
}

TEST(GenerationTerminal, ManyLayersShareBars) {
  std::vector<HeadQueries> heads;
  for (std::int64_t layer = 0; layer < 80; ++layer)
    heads.push_back({layer, 0, {4}, {1}, {1}, {layer < 3 ? 1.0F : 0.0F}});
  const std::string text = print_token_statistics(std::vector<AddedToken>{{"a", 0}}, heads);
  EXPECT_THAT(text, HasSubstr("3 layers each, from 0 to 79"));
  EXPECT_THAT(text, HasSubstr("|█" + std::string(26, ' ') + "|"));
}

TEST(GenerationTerminal, TheListForPrograms) {
  EXPECT_EQ(
      token_statistics_json(some_heads()),
      R"([{"layer":1,"head":0,"n_eff":[1,2],"kalman_gain":[0.5,0.75],"entropy":[0,0.5],"bos_mass":[1,0.25]},)"
      R"({"layer":1,"head":1,"n_eff":[3,4],"kalman_gain":[0.5,0.25],"entropy":[1,1],"bos_mass":[0.5,0]},)"
      R"({"layer":4,"head":0,"n_eff":[8,null],"kalman_gain":[0.5,null],"entropy":[2,null],"bos_mass":[0,null]}])");
}

}  // namespace generation_terminal_test
}  // namespace gainlens::reports
