#include "look/segments.h"

#include "core/error.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gainlens::look {
namespace segments_test {

using ::testing::HasSubstr;

class Segments : public ::testing::Test {
 protected:
  std::vector<PromptSegment> read(const std::string& text, std::int64_t positions = 10) const {
    return read_segments(gainlens::testing::write_file(folder_.path() / "segments.json", text), positions);
  }
  std::string refusal(const std::string& text) const {
    try {
      read(text);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "it was read";
  }

  gainlens::testing::TemporaryFolder folder_;
};

TEST_F(Segments, CoverThePromptInOrder) {
  const auto found = read(R"([{"name": "a", "begin": 0, "end": 4}, {"begin": 4, "end": 10, "name": "b\u001b"}])");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "a");
  EXPECT_EQ(found[0].begin, 0);
  EXPECT_EQ(found[0].end, 4);
  EXPECT_EQ(found[1].begin, 4);
  EXPECT_EQ(found[1].end, 10);
}

TEST_F(Segments, OneMayBeTheWholePrompt) {
  EXPECT_EQ(read(R"([{"name": "", "begin": 0, "end": 10}])").size(), 1u);
}

TEST_F(Segments, EachFaultIsNamed) {
  const std::string list = "must be a list";
  for (const char* text : {"{}", "[]", "1", "null", R"("a")"}) EXPECT_THAT(refusal(text), HasSubstr(list)) << text;
  EXPECT_THAT(refusal("[{"), HasSubstr("segments.json"));
  for (const char* text :
       {R"([1])", R"([{"name": "a", "begin": 0}])", R"([{"name": "a", "begin": 0, "end": 10, "more": 1}])",
        R"([{"name": "a", "begin": 0, "ende": 10}])", R"([{"name": 1, "begin": 0, "end": 10}])",
        R"([{"name": "a", "begin": 0.0, "end": 10}])", R"([{"name": "a", "begin": 0, "end": "10"}])"})
    EXPECT_THAT(refusal(text), HasSubstr("entry 0 must have a \"name\"")) << text;

  const auto pair = [&](const std::string& first, const std::string& second) {
    return refusal(R"([{"name": "a", )" + first + R"(}, {"name": "b", )" + second + "}]");
  };
  EXPECT_THAT(pair(R"("begin": 0, "end": 5)", R"("begin": 4, "end": 10)"),
              HasSubstr("'b' begins at token 4, which overlaps the end of those before it at 5"));
  EXPECT_THAT(pair(R"("begin": 0, "end": 5)", R"("begin": 6, "end": 10)"),
              HasSubstr("'b' begins at token 6, which leaves a gap after the end of those before it at 5"));
  EXPECT_THAT(pair(R"("begin": 1, "end": 5)", R"("begin": 5, "end": 10)"), HasSubstr("'a' begins at token 1"));
  EXPECT_THAT(pair(R"("begin": -1, "end": 5)", R"("begin": 5, "end": 10)"), HasSubstr("'a' begins at token -1"));
  EXPECT_THAT(pair(R"("begin": 0, "end": 5)", R"("begin": 5, "end": 5)"), HasSubstr("'b' holds no token ([5, 5))"));
  EXPECT_THAT(pair(R"("begin": 0, "end": 5)", R"("begin": 5, "end": 3)"), HasSubstr("'b' holds no token ([5, 3))"));
  EXPECT_THAT(pair(R"("begin": 0, "end": 5)", R"("begin": 5, "end": 11)"),
              HasSubstr("'b' ends at token 11, and the prompt has 10 tokens"));
  EXPECT_THAT(pair(R"("begin": 0, "end": 5)", R"("begin": 5, "end": 9)"), HasSubstr("they cover 9 of 10 tokens"));
  EXPECT_THAT(refusal(R"([{"name": "a", "begin": 0, "end": 5}, {"name": "a", "begin": 5, "end": 10}])"),
              HasSubstr("'a' is there twice"));
  EXPECT_THAT(refusal(R"([{"name": "a", "begin": 18446744073709551615, "end": 10}])"),
              HasSubstr("'a' begins at token"));
  EXPECT_THAT(refusal(R"([{"name": "\u001b[2J", "begin": 3, "end": 10}])"), ::testing::Not(HasSubstr("\x1b")));
}

}  // namespace segments_test
}  // namespace gainlens::look
