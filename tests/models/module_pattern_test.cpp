// Regular expressions for names of modules, against what Python's re.fullmatch and re.match give.
#include "models/checkpoint/module_pattern.h"

#include "checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::models {
namespace module_pattern_test {

using models::testing::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

bool fits(const std::string& pattern, const std::string& name) {
  return ModulePattern(pattern, "file: 'key'").matches(name);
}

TEST(ModulePattern, MatchesTheWholeName) {
  EXPECT_TRUE(fits(R"(.*\.(q|v)_proj)", "model.layers.0.self_attn.q_proj"));
  EXPECT_FALSE(fits(R"(.*\.(q|v)_proj)", "model.layers.0.self_attn.q_proj.base"));
  EXPECT_FALSE(fits("q_proj", "model.layers.0.self_attn.q_proj"));
  EXPECT_TRUE(fits("a|ab", "ab"));  // the first branch matches less than the name: re.fullmatch goes on
  EXPECT_TRUE(fits(R"(model\.layers\.[\d]{1,}(?!.*\.experts\.\d)\..*)", "model.layers.11.mlp.up_proj"));
  EXPECT_FALSE(fits(R"(model\.layers\.[\d]{1,}(?!.*\.experts\.\d)\..*)", "model.layers.1.mlp.experts.3.up_proj"));
}

TEST(ModulePattern, FindsTheNumberOfALayer) {
  const ModulePattern pattern(R"(.*?\.[^.]*\.(?P<idx>\d+)\.)", "file");
  EXPECT_EQ(pattern.index_in("model.layers.12.mlp.experts.3.up_proj"), "12");
  EXPECT_EQ(pattern.index_in("lm_head"), "");
}

TEST(ModulePattern, WhatCannotBeReadAsPythonReadsItIsRefused) {
  const auto refusal = [](const std::string& pattern) {
    return message_of([&] { ModulePattern(pattern, "file: 'key'"); });
  };
  EXPECT_THAT(refusal("(q_proj"),
              AllOf(HasSubstr("file: 'key': the pattern '(q_proj' is no regular expression"), HasSubstr("at byte 7")));
  for (const char* other : {"a{,3}", "[[:alpha:]]", "a\\Z", "(a)?(?(1)b|c)", "(*UTF)a"})
    EXPECT_THAT(refusal(other), HasSubstr("which Python and PCRE2 read differently")) << other;
  EXPECT_THAT(refusal(std::string(70000, 'a')), HasSubstr("a pattern of 70000 bytes; at most 65536"));
}

TEST(ModulePattern, AMatchWithoutEndStopsInOneLine) {
  const ModulePattern pattern("(a+)+b", "file: 'key'");
  const std::string message = message_of([&] { pattern.matches(std::string(60, 'a') + "b!"); });
  EXPECT_THAT(message, AllOf(HasSubstr("file: 'key': the pattern '(a+)+b' stops at 'aaaa"), HasSubstr("limit")));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

}  // namespace module_pattern_test
}  // namespace gainlens::models
