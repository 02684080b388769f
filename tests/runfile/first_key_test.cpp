#include "runfile/first_key.h"

#include "core/error.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace gainlens::runfile {
namespace first_key_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(FirstKey, WindowsAreRead) {
  EXPECT_EQ(attention_window("global"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(attention_window("window:1"), 1);
  EXPECT_EQ(attention_window("window:512"), 512);
  for (const char* wrong : {"", "Global", "window", "window:", "window:0", "window:-3", "window:+3", "window:3x",
                            "window:3.5", "window:99999999999999999999", " window:3"}) {
    EXPECT_FALSE(attention_window(wrong).has_value()) << wrong;
  }
}

TEST(FirstKey, IsSeenByWhomTheWindowReachesIt) {
  for (std::int64_t tokens = 2; tokens <= 20; ++tokens) {
    for (std::int64_t window = 1; window <= 24; ++window) {
      int queries = 0, seeing = 0;
      for (std::int64_t query = 0; query < tokens; ++query) {
        if (2 * query < tokens) continue;  // the first half
        ++queries;
        const std::int64_t oldest_key = query - window + 1;
        seeing += oldest_key <= 0 ? 1 : 0;
      }
      const FirstKey expected = seeing == 0         ? FirstKey::hidden
                                : seeing == queries ? FirstKey::seen
                                                    : FirstKey::partly_hidden;
      EXPECT_EQ(first_key_visibility(fmt::format("window:{}", window), tokens), expected) << tokens << " " << window;
    }
    EXPECT_EQ(first_key_visibility("global", tokens), FirstKey::seen);
  }
}

TEST(FirstKey, OtherKindsAreRefused) {
  EXPECT_THAT([] { first_key_visibility("window:x", 8); },
              ThrowsMessage<InvalidArgument>(HasSubstr("attention kind 'window:x'; a run has 'global' or 'window:N'")));
}

}  // namespace first_key_test
}  // namespace gainlens::runfile
