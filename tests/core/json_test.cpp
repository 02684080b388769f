#include "core/json.h"

#include "core/error.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace gainlens {
namespace json_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

auto refused(const std::string& text, const std::string& message) {
  EXPECT_THAT([&] { parse_json(text, "x.json"); },
              ThrowsMessage<InvalidArgument>(AllOf(StartsWith("x.json: "), HasSubstr(message), Not(HasSubstr("\n")))))
      << text;
}

std::filesystem::path write(const testing::TemporaryFolder& folder, const std::string& name,
                            const std::string& content) {
  std::ofstream(folder.path() / name, std::ios::binary) << content;
  return folder.path() / name;
}

TEST(ParseJson, ReadsEveryKindOfValue) {
  const Json json = parse_json(R"( {"a": [1, -2, 0.5, true, null, "t"], "b": {"a": 18446744073709551615}} )", "x.json");
  EXPECT_EQ(json["a"].size(), 6u);
  EXPECT_EQ(json["a"][1], -2);
  EXPECT_EQ(json["b"]["a"].get<std::uint64_t>(), 18446744073709551615u);
}

TEST(ParseJson, SameKeyInDifferentObjectsIsFine) {
  EXPECT_EQ(parse_json(R"([{"a": 1}, {"a": {"a": 2}}])", "x.json")[1]["a"]["a"], 2);
}

TEST(ParseJson, KeyTwiceInOneObjectIsRefused) {
  refused(R"({"a": 1, "b": 2, "a": 3})", "key 'a' appears twice in one object");
  refused(R"({"o": {"a": 1, "\u0061": 3}})", "key 'a' appears twice");
  refused(R"({"o": {"n": {}, "n": 3}})", "key 'n' appears twice");
}

TEST(ParseJson, DepthLimitIs64) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse_json(nested(64), "x.json"));
  refused(nested(65), "nested deeper than 64 levels");
  refused(std::string(1'000'000, '['), "nested deeper than 64 levels");
  std::string objects;
  for (int i = 0; i < 65; ++i) objects += R"({"a":)";
  refused(objects, "nested deeper than 64 levels");
}

TEST(ParseJson, DepthCountsOpenLevelsOnly) {
  std::string wide = "[[]";
  for (int i = 0; i < 100; ++i) wide += ",[],{}";
  EXPECT_EQ(parse_json(wide + "]", "x.json").size(), 201u);
}

TEST(ParseJson, SyntaxErrorsNameTheByte) {
  refused(R"({"a": 1,})", "not valid JSON at byte 9");
  refused("", "not valid JSON at byte 1");
  refused(R"({"a" 1})", "not valid JSON");
  refused("{\"a\": \"\n\"}", "not valid JSON");  // a raw line break in a string
  refused("[NaN]", "not valid JSON");
  refused("[1e999]", "not valid JSON");
  refused("// remark\n{}", "not valid JSON");
}

TEST(ParseJson, OnlyTextsOfSeveralLinesNameTheLine) {
  refused(R"({"a" 1})", "x.json: not valid JSON at byte 6: syntax error while parsing");
  refused("{\n\"a\" 1}", "x.json: not valid JSON at byte 7: parse error at line 2, column 5: syntax error");
}

TEST(ParseJson, TrailingTextAndInvalidUtf8AreRefused) {
  refused("{} {}", "not valid JSON at byte 4");
  refused(std::string("{}\0", 3), "not valid JSON at byte 3: a NUL byte");
  refused("[\"\xff\"]", "not valid JSON");
}

TEST(ReadTextFile, WholeContent) {
  const testing::TemporaryFolder folder;
  const std::string content("a\0b\r\n", 5);
  EXPECT_EQ(read_text_file(write(folder, "t", content)), content);
  EXPECT_EQ(read_text_file(write(folder, "empty", "")), "");
}

TEST(ReadTextFile, SizeLimitIsInclusive) {
  const testing::TemporaryFolder folder;
  const auto path = write(folder, "t", "12345");
  EXPECT_EQ(read_text_file(path, 5), "12345");
  EXPECT_THAT([&] { read_text_file(path, 4); },
              ThrowsMessage<InvalidArgument>(HasSubstr("5 bytes; a file of this kind may have at most 4")));
}

TEST(ReadTextFile, MissingAndFolderAreNamed) {
  const testing::TemporaryFolder folder;
  EXPECT_THAT([&] { read_text_file(folder.path() / "no\nsuch"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("no\\x0asuch: no such file")));
  EXPECT_THAT([&] { read_text_file(folder.path()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("a folder; a file is needed here")));
}

TEST(ReadTextFile, FileThatGivesFewerBytesThanItsSizeIsRefused) {
  const std::filesystem::path odd = "/sys/kernel/mm/transparent_hugepage/enabled";  // size 4096, content one line
  std::error_code error;
  if (std::filesystem::file_size(odd, error) != 4096 || error) GTEST_SKIP() << "SKIPPED: no " << odd;
  EXPECT_THAT([&] { read_text_file(odd); },
              ThrowsMessage<InvalidArgument>(HasSubstr("of its 4096 bytes could be read")));
}

TEST(ReadJsonFile, NamesTheFileOnOneLine) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(read_json_file(write(folder, "good.json", R"({"a": 1})"))["a"], 1);
  const auto path = write(folder, "bad\n.json", "{");
  EXPECT_THAT([&] { read_json_file(path); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("bad\\x0a.json: not valid JSON"), Not(HasSubstr("\n")))));
}

}  // namespace json_test
}  // namespace gainlens
