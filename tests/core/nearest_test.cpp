#include "core/nearest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gainlens {
namespace nearest_test {

TEST(EditDistance, ByHand) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);  // k>s, e>i, +g
  EXPECT_EQ(edit_distance("dtpye", "dtype"), 1u);     // one swap of neighbours
  EXPECT_EQ(edit_distance("abcd", "badc"), 2u);       // two swaps
}

TEST(EditDistance, IsSymmetric) {
  EXPECT_EQ(edit_distance("sweep", "seep"), edit_distance("seep", "sweep"));
}

TEST(NearestMatch, PicksTheClosest) {
  const std::vector<std::string> commands{"sweep", "report", "inspect"};
  EXPECT_EQ(nearest_match("swep", commands), "sweep");
  EXPECT_EQ(nearest_match("reprot", commands), "report");
  EXPECT_EQ(nearest_match("report", commands), "report");
}

TEST(NearestMatch, TooFarIsNoMatch) {
  const std::vector<std::string> commands{"sweep", "report"};
  EXPECT_EQ(nearest_match("estimators", commands), "");
  EXPECT_EQ(nearest_match("swxyz", commands), "");       // 3 edits of 5 letters
  EXPECT_EQ(nearest_match("swxyp", commands), "sweep");  // 2 edits
  EXPECT_EQ(nearest_match("sweep", std::vector<std::string>{}), "");
}

TEST(NearestMatch, AThirdOfALongNameMayDiffer) {
  const std::vector<std::string> names{"layers.0.attention"};             // 18 letters: up to 6 edits
  EXPECT_EQ(nearest_match("layers.0.attentionXXXXXX", names), names[0]);  // 24 letters, 6 edits
  EXPECT_EQ(nearest_match("layers.0.attentionXXXXXXXXXX", names), "");    // 28 letters allow 9, 10 needed
}

TEST(NearestMatch, GiantCandidateCostsNothing) {
  // Without the bound on the lengths, this would take 10^11 steps.
  const std::vector<std::string> names{std::string(100'000'000, 'x'), "lm_head"};
  EXPECT_EQ(nearest_match(std::string(1000, 'x'), names), "");
  EXPECT_EQ(nearest_match("lm_haed", names), "lm_head");
}

TEST(DidYouMean, ReadsAsTheEndOfAMessage) {
  const std::vector<std::string> commands{"sweep"};
  EXPECT_EQ(did_you_mean("swep", commands), "; did you mean 'sweep'?");
  EXPECT_EQ(did_you_mean("estimators", commands), "");
}

TEST(DidYouMean, ANameFromAFileIsSafeForATerminal) {
  const std::vector<std::string> names{"post_attention_\x1b[2Jlayernorm\n"};
  EXPECT_EQ(did_you_mean("post_attention_layernorm", names), "; did you mean 'post_attention_\\x1b[2Jlayernorm\\x0a'?");
}

}  // namespace nearest_test
}  // namespace gainlens
