#include "data/text.h"

#include "core/error.h"
#include "core/utf8.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace gainlens::data {
namespace text_test {

using testing::gzipped;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing::write_file;

class Text : public ::testing::Test {
 protected:
  std::filesystem::path file(std::string_view content) { return write_file(folder_.path() / "text", content); }
  void expect_refused(std::string_view content, const std::string& message) {
    const auto path = file(content);
    EXPECT_THAT([&] { read_text(path); }, ThrowsMessage<InvalidArgument>(HasSubstr(message)));
  }
  void expect_ids_refused(std::string_view content, const std::string& message) {
    const auto path = file(content);
    EXPECT_THAT([&] { read_token_ids(path); }, ThrowsMessage<InvalidArgument>(HasSubstr(message)));
  }
  testing::TemporaryFolder folder_;
};

TEST_F(Text, PlainIsTakenAsItIs) {
  EXPECT_EQ(read_text(file("a\r\n\xEF\xBB\xBFä\n")), "a\r\n\xEF\xBB\xBFä\n");
}

TEST_F(Text, GzipMembersAreJoined) {
  EXPECT_EQ(read_text(file(gzipped("one ") + gzipped("two"))), "one two");
}

TEST_F(Text, LargerThanOneBlock) {
  const std::string text(3'000'001, 'x');
  EXPECT_EQ(read_text(file(gzipped(text))), text);
}

TEST_F(Text, TheLargestSizeIsInclusive) {
  const auto path = file(gzipped(std::string(2048, 'x')));
  EXPECT_EQ(read_text(path, 2048).size(), 2048u);
  EXPECT_THAT([&] { read_text(path, 2047); },
              ThrowsMessage<InvalidArgument>(HasSubstr("larger than 2.0 KiB unpacked; give a smaller file")));
}

TEST_F(Text, TruncatedGzipIsRefused) {
  const std::string packed = gzipped("a text that is long enough to be cut in the middle");
  expect_refused(packed.substr(0, packed.size() - 9), "broken or truncated");
  expect_refused(packed.substr(0, 5), "broken or truncated");
}

TEST_F(Text, CorruptGzipIsRefused) {
  std::string packed = gzipped("a text that is long enough to be damaged");
  packed[packed.size() - 6] = static_cast<char>(packed[packed.size() - 6] ^ 1);  // in the checksum
  expect_refused(packed, "broken or truncated");
}

TEST_F(Text, OnlyZerosAndOtherMembersStandBehindAMember) {
  const std::string one = gzipped("one "), two = gzipped("two");
  EXPECT_EQ(read_text(file(one + two)), "one two");
  EXPECT_EQ(read_text(file(one + std::string(700, '\0'))), "one ");
  expect_refused(one + "plain text", "what follows a gzip member is no other member");
  expect_refused(one + std::string(3, '\0') + two, "what follows a gzip member is no other member");
  expect_refused(one + two.substr(0, 1), "broken or truncated");
  std::string damaged = two;
  damaged[0] = 'x';
  expect_refused(one + damaged, "what follows a gzip member is no other member");
  EXPECT_EQ(read_text(file("\x1F")), "\x1F");  // too short for gzip's magic bytes
}

TEST_F(Text, InvalidUtf8IsNamedByItsByte) {
  expect_refused("ab\xFF", "not UTF-8 at byte 2");
  expect_refused("abc\xC3", "not UTF-8 at byte 3");        // cut off
  expect_refused("a\xED\xA0\x80", "not UTF-8 at byte 1");  // a surrogate
  expect_refused("\xC0\xAF", "not UTF-8 at byte 0");       // overlong
}

TEST_F(Text, EmptyMissingAndFolderAreRefused) {
  expect_refused("", "empty");
  expect_refused(gzipped(""), "empty");
  EXPECT_THAT([&] { read_text(folder_.path() / "none"); }, ThrowsMessage<InvalidArgument>(HasSubstr("no such file")));
  EXPECT_THAT([&] { read_text(folder_.path()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("a folder; a file is needed here")));
}

/// Reads a text in parts, and joins these.
std::string joined(TextReader& reader) {
  std::string text;
  for (std::string_view part = reader.next(); !part.empty(); part = reader.next()) {
    EXPECT_EQ(first_invalid_utf8(part), std::nullopt);
    text += part;
  }
  return text;
}

TEST_F(Text, PartsHaveWholeCharacters) {
  std::string text = "x";
  while (text.size() < 2'000'000) text += "\xF0\x9F\x98\x80\xC3\xA4";  // no block ends between two of them
  for (const auto& path : {file(text), write_file(folder_.path() / "packed", gzipped(text))}) {
    TextReader reader(path);
    EXPECT_EQ(joined(reader), text);
    EXPECT_EQ(reader.sha256(), sha256_hex(text));
  }
}

TEST_F(Text, PartsNameTheByteThatIsNotUtf8) {
  const std::string text(700'000, 'x');
  const auto expect_invalid = [&](const std::string& end) {
    TextReader reader(file(text + end));
    EXPECT_THAT([&] { joined(reader); }, ThrowsMessage<InvalidArgument>(HasSubstr("not UTF-8 at byte 700000;")));
  };
  expect_invalid("\xFF" + text);
  expect_invalid("\xF0\x9F\x98");  // cut off
}

TEST_F(Text, PartsOfATextThatIsEmptyOrTooLargeAreRefused) {
  TextReader empty(file(gzipped("")));
  EXPECT_THAT([&] { joined(empty); }, ThrowsMessage<InvalidArgument>(HasSubstr("empty; give a text")));
  TextReader large(file(gzipped(std::string(3'000'000, 'x'))), 2'000'000);
  EXPECT_THAT([&] { joined(large); }, ThrowsMessage<InvalidArgument>(HasSubstr("larger than 1.9 MiB unpacked")));
}

TEST_F(Text, PipesAreReadOnce) {
  const auto from_pipe = [](std::string_view content) {
    return read_text(testing::pipe_with(content), 100, formats::UnpackedFile::Accepts::files_and_pipes);
  };
  EXPECT_EQ(from_pipe("one two\n"), "one two\n");
  EXPECT_EQ(from_pipe(gzipped("packed")), "packed");
  EXPECT_EQ(read_token_ids(testing::pipe_with("[3, 4]")), (std::vector<tokenizers::TokenId>{3, 4}));
  EXPECT_THAT([&] { read_text(testing::pipe_with("one")); },
              ThrowsMessage<InvalidArgument>(HasSubstr("not a regular file")));
}

TEST_F(Text, TokenIdsPlainAndGzipped) {
  const std::vector<tokenizers::TokenId> expected{1, 0, 2147483647};
  EXPECT_EQ(read_token_ids(file("[1, 0, 2147483647]")), expected);
  EXPECT_EQ(read_token_ids(file(gzipped("[1,0,2147483647]"))), expected);
}

TEST_F(Text, WrongTokenIdsAreNamed) {
  expect_ids_refused("[1, 2147483648]", "item 1 is 2147483648");
  expect_ids_refused("[-1]", "item 0 is -1");
  expect_ids_refused("[1, 2.0]", "item 1 is 2.0");
  expect_ids_refused("[true]", "item 0 is true");
  expect_ids_refused("[]", "an empty array");
  expect_ids_refused("{\"ids\": [1]}", "JSON of type object");
  expect_ids_refused("[1, 2", "not valid JSON");
  expect_ids_refused(std::string(100, '['), "nested deeper");
}

}  // namespace text_test
}  // namespace gainlens::data
