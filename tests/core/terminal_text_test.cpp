#include "core/terminal_text.h"

#include "core/console.h"
#include "core/json.h"

#include <gtest/gtest.h>

#include <string>

namespace gainlens {
namespace terminal_text_test {

TEST(TerminalText, LinesTabsAndOtherScriptsStay) {
  for (const char* text : {"", "a\n\tb\n", "Z\u00fcrich \u6771\u4eac", "\u200d"}) EXPECT_EQ(terminal_text(text), text);
}

TEST(TerminalText, WhatATerminalObeysIsMadeVisible) {
  EXPECT_EQ(terminal_text("\x1b[2J\r\x7f"), "\\x1b[2J\\x0d\\x7f");
  EXPECT_EQ(terminal_text("\u009b31m"), "\\xc2\\x9b31m");
  EXPECT_EQ(terminal_text("\x9b"
                          "31m\xff"),
            "\\x9b31m\\xff");
  EXPECT_EQ(terminal_text(std::string(1, '\0')), "\\x00");
  EXPECT_EQ(terminal_text("\u202e"), "\\xe2\\x80\\xae");  // turns the direction of writing
}

TEST(TerminalText, ALineHasNoBreaks) {
  EXPECT_EQ(terminal_line("a\nb\tc\x1b"), "a\\x0ab\\x09c\\x1b");
}

TEST(TerminalText, JsonKeepsItsValues) {
  const OrderedJson json = {{"name\u009b", "\x1b\x7f\u202e\u00fc\n"}};
  const std::string text = json_text(json);
  EXPECT_EQ(text, "{\"name\\u009b\":\"\\u001b\\u007f\\u202e\u00fc\\n\"}");
  EXPECT_EQ(text, terminal_text(text));
  EXPECT_EQ(OrderedJson::parse(text), json);
  EXPECT_EQ(OrderedJson::parse(json_text(json, 2)), json);
}

TEST(Console, NeitherStreamSendsCommandsOn) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  print_result("{}\n", "\x1b[2J");
  print_notice("{}\n", "\u009b");
  flush_results();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "\\x1b[2J\n");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "\\xc2\\x9b\n");
}

}  // namespace terminal_text_test
}  // namespace gainlens
