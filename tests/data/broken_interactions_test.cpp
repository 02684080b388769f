// Every broken data set gets one line that names the place, what is wrong, and what is allowed.
#include "data/interactions.h"

#include "data/raw_interactions.h"
#include "support/refusal.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace gainlens::data {
namespace broken_interactions_test {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using testing::refusal_of;
using ::testing::StartsWith;
using testing::write_file;

class BrokenInteractions : public ::testing::Test {
 protected:
  /// The message without the path in front.
  std::string refusal(std::string_view content, const InteractionOptions& options = {.min_user_interactions = 1}) {
    const auto path = write_file(folder_.path() / "data", content);
    const std::string message = refusal_of([&] { read_interactions(path, options); });
    const std::string start = path.string() + ": ";
    EXPECT_THAT(message, StartsWith(start));
    EXPECT_EQ(std::count_if(message.begin(), message.end(), [](unsigned char c) { return c < 0x20; }), 0) << message;
    return message.substr(std::min(start.size(), message.size()));
  }
  testing::TemporaryFolder folder_;
};

TEST_F(BrokenInteractions, MissingEmptyAndTruncatedFiles) {
  EXPECT_THAT(refusal_of([&] { read_interactions(folder_.path() / "none"); }), HasSubstr("no such file"));
  EXPECT_THAT(refusal_of([&] { read_interactions(folder_.path()); }), HasSubstr("a folder; a file is needed here"));
  for (const char* content : {"", "\n\n", " \r\n", "\xEF\xBB\xBF"})
    EXPECT_EQ(refusal(content), "empty; give a data set");
  EXPECT_THAT(refusal("user_id:token\titem_id:token\n"), HasSubstr("no interactions, only a header"));
  const std::string packed = testing::gzipped("1 2 3 4 5 6 7 8 9\n2 3 4 5 6 7 8 9 10\n");
  EXPECT_THAT(refusal(packed.substr(0, packed.size() - 9)), HasSubstr("broken or truncated"));
}

TEST_F(BrokenInteractions, UnknownFormatsNameTheFirstLine) {
  EXPECT_THAT(refusal("It was a dark night.\n"), StartsWith("the first line 'It was a dark night.' is not that of a "));
  for (const char* content : {"1,2,3\n", "1\n1 2 3\n", "user\titem\ttime\n1\t2\t3\n", "[1, 2]\n", "\n1 2 3\n"})
    EXPECT_THAT(refusal(content), HasSubstr("is not that of a data set; give RecBole's .inter")) << content;
  EXPECT_EQ(refusal("\xFF\xFE"
                    "1\n"),
            "UTF-16; convert it, for example with iconv -t UTF-8");
  // broken_parquet_test.cpp has broken Parquet files. This one is refused in a build without Arrow too.
  EXPECT_THAT(refusal("PAR1\x15\x04PAR1"), AllOf(HasSubstr("a Parquet file"), HasSubstr("convert the file to CSV")));
}

TEST_F(BrokenInteractions, MalformedLinesAreNamedAndCounted) {
  EXPECT_EQ(refusal("a::1::5::1\na::1::5\na::2::5::2\n"),
            "line 2 has 3 fields: 'a::1::5'; each line is user::item::rating::time");
  EXPECT_THAT(refusal("a::1::5::1\na::1::5\nx\n"),
              StartsWith("line 2 has 3 fields: 'a::1::5' (1 other line is malform"));
  EXPECT_THAT(refusal("x::1\nx\n\n1::2::3::4\ny\n"),
              HasSubstr("line 1 has 2 fields: 'x::1' (3 other lines are malformed)"));
  EXPECT_THAT(refusal("a::1::5::1::9\n"), HasSubstr("has 5 fields"));
  EXPECT_THAT(refusal("a::1::good::1\n"), HasSubstr("has the rating 'good'"));
  EXPECT_THAT(refusal("::1::5::1\n"), HasSubstr("has an empty user"));
  EXPECT_THAT(refusal("a::::5::1\n"), HasSubstr("has an empty item"));
  EXPECT_THAT(refusal("a\x1B[2J::1::5::1\n"), StartsWith("line 1 has a control character in its user: 'a\\x1b[2J::"));
  EXPECT_THAT(refusal(std::string("a::1\0::5::1\n", 12)), HasSubstr("has a control character in its item"));
  const std::string long_line = refusal("a::" + std::string(5000, 'x') + "\n");
  EXPECT_THAT(long_line, HasSubstr("... (5003 bytes)'"));
  EXPECT_LT(long_line.size(), 300u);
}

TEST_F(BrokenInteractions, BlankLinesBetweenOthersAreMalformed) {
  EXPECT_THAT(refusal("1 2 3\n\n2 3 4\n"), StartsWith("line 2 has no item: ''; each line is `user item item ...`"));
  EXPECT_THAT(refusal("a::1::5::1\r\n\r\na::2::5::2\r\n"), StartsWith("line 2 has 1 field: ''"));
}

TEST_F(BrokenInteractions, TimesHaveToBeFiniteNumbers) {
  for (const char* time : {"soon", "", "nan", "inf", "-inf", "1e999", "12x", " 1", "0x10"}) {
    EXPECT_THAT(refusal(std::string("a::1::5::") + time + "\n"),
                HasSubstr(std::string("line 1 has the time '") + time + "', which is not a finite number"));
    EXPECT_THAT(refusal(std::string("user_id:token\ttimestamp:float\titem_id:token\na\t") + time + "\tb\n"),
                HasSubstr(std::string("line 2 has the time '") + time + "', which is not a finite number"));
  }
  // Nanoseconds would be rounded to multiples of 256.
  EXPECT_THAT(refusal("a::1::5::1388534400000000001\n"), HasSubstr("which is not below 2^53"));
  EXPECT_THAT(refusal("a::1::5::9007199254740992\n"), HasSubstr("which is not below 2^53"));
  EXPECT_EQ(refusal_of([&] {
              read_interactions(write_file(folder_.path() / "data", "a::1::5::9007199254740991\n"),
                                {.min_user_interactions = 1});
            }),
            "accepted");
}

TEST_F(BrokenInteractions, Sequences) {
  EXPECT_THAT(refusal("1 2 3\n2\n"),
              StartsWith("line 2 has no item: '2'; each line is `user item item ...`, one line"));
  for (const char* item : {"0", "-1", "2147483648", "99999999999999999999", "007", "1.5", "x", "+3"})
    EXPECT_THAT(refusal(std::string("1 2 ") + item + "\n"), HasSubstr(std::string("has the item '") + item + "'"));
  EXPECT_THAT(refusal("1 0 2\n"), HasSubstr("line 1 has the item '0': '1 0 2'"));
  EXPECT_THAT(refusal("1 2 3\n2 3 4\n1 5 6\n2 7 8\n"),
              StartsWith("line 3 repeats user '1' of line 1: '1 5 6' (1 other line is malformed); each line is"));
}

TEST_F(BrokenInteractions, RecBoleHeaders) {
  EXPECT_EQ(refusal("user_id:token\trating:float\nu\t1\n"), "the header has no column item_id:token; add it");
  EXPECT_EQ(refusal("item_id:token\n1\n"), "the header has no column user_id:token; add it");
  EXPECT_THAT(refusal("user_id:token\titem_id:token\titem_id:token\nu\t1\t1\n"), HasSubstr("the column item_id twice"));
  EXPECT_EQ(refusal("user_id:token\titem_id:token\ttimestamp:token\nu\t1\t1\n"),
            "the header has the column 'timestamp:token'; it must be timestamp:float");
  EXPECT_THAT(refusal("user_id:token item_id:token\nu 1\n"), HasSubstr("split columns by one tab"));
  EXPECT_THAT(refusal("user_id:token\titem_id:token\nu\nu\ta\tb\n"),
              StartsWith("line 2 has 1 of 2 columns: 'u' (1 other line is malformed); each line has the columns of"));
}

TEST_F(BrokenInteractions, AmazonReviews) {
  const std::string good = R"({"reviewerID": "u", "asin": "i", "unixReviewTime": 1})";
  const auto second = [&](const std::string& line) { return refusal(good + "\n" + line + "\n"); };
  EXPECT_THAT(second(R"({"reviewerID": "u")"),
              StartsWith("line 2 is not valid JSON: '{\"reviewerID\": \"u\"'; each line"));
  EXPECT_THAT(second(R"({'reviewerID': 'u'})"), HasSubstr("is not valid JSON"));
  EXPECT_THAT(second(good + " x"), HasSubstr("is not valid JSON"));
  EXPECT_THAT(second(good + good), HasSubstr("is not valid JSON"));
  EXPECT_THAT(second("{\"reviewerID\": \"\xFF\"}"), HasSubstr("is not valid JSON"));
  EXPECT_THAT(second(good + std::string("\0x", 2)), HasSubstr("has a NUL byte"));
  EXPECT_THAT(second(std::string(100000, '[')), HasSubstr("is not a JSON object"));
  EXPECT_THAT(second(R"({"a": )" + std::string(100000, '[')), HasSubstr("is not valid JSON"));
  for (const char* line : {"7", "\"text\"", "null", "true", "[1]", "1.5"})
    EXPECT_THAT(second(line), StartsWith("line 2 is not a JSON object")) << line;
  EXPECT_THAT(second(R"({"asin": "i", "unixReviewTime": 1})"), HasSubstr("has no key 'reviewerID'"));
  EXPECT_THAT(second(R"({"reviewerID": "u", "unixReviewTime": 1})"), HasSubstr("has no key 'asin'"));
  EXPECT_THAT(second(R"({"reviewerID": "u", "asin": "i"})"), HasSubstr("has no key 'unixReviewTime'"));
  EXPECT_THAT(second(R"({"reviewerID": "u", "x": {"asin": "i"}, "unixReviewTime": 1})"), HasSubstr("no key 'asin'"));
  EXPECT_THAT(second(R"({"asin": "i", "asin": "j"})"), HasSubstr("has the key 'asin' twice"));
  for (const char* value : {"1.5", "null", "true", "[\"i\"]", "{}"}) {
    EXPECT_THAT(second(std::string(R"({"asin": )") + value + "}"),
                HasSubstr("has the key 'asin' with neither a text nor a whole number"))
        << value;
  }
  EXPECT_THAT(second(R"({"unixReviewTime": "soon"})"), HasSubstr("has the time 'soon', which is neither a finite num"));
  EXPECT_THAT(second(R"({"unixReviewTime": "2014-02-01"})"), HasSubstr("the date '2014-02-01', and line 1 has a numb"));
  EXPECT_THAT(second(R"({"unixReviewTime": [1]})"),
              HasSubstr("has the key 'unixReviewTime' with neither a number nor a date"));
  EXPECT_THAT(second(R"({"unixReviewTime": 9007199254740993})"), HasSubstr("is not below 2^53"));
  EXPECT_THAT(second(R"({"unixReviewTime": 1e999})"), HasSubstr("line 2 is not valid JSON"));
  EXPECT_THAT(second(R"({"reviewerID": "a\nb", "asin": "i", "unixReviewTime": 1})"), HasSubstr("control character"));
}

TEST_F(BrokenInteractions, RepeatedInteractions) {
  EXPECT_EQ(refusal("u::a::5::1\nu::b::5::1\nu::a::4::1\n"),
            "lines 1 and 3 are the same interaction of user 'u' with item 'a' at the same time; keep one, or give "
            "--duplicates exact");
  EXPECT_EQ(
      refusal("v::a::5::9\nu::b::5::1\nu::b::5::1\nv::a::5::9\nu::b::5::1\n"),
      "lines 2 and 3 are the same interaction of user 'u' with item 'b' at the same time (2 other interactions are "
      "repeated too); keep one, or give --duplicates exact");
}

TEST_F(BrokenInteractions, NobodyIsLeft) {
  EXPECT_EQ(refusal("1 2 3\n2 3 4\n", {}), "each of its 2 users has fewer than 3 interactions; give a larger data set");
  EXPECT_THAT(refusal("1 2 3 4\n2 3 4 5\n", {.min_item_count = 2}),
              HasSubstr("each of its 2 users has fewer than 3 interactions with items that have at least 2 "
                        "(--min-item-count); give a larger data set, or a smaller --min-item-count"));
  EXPECT_THAT(refusal("1 2 3 4\n", {.min_item_count = 2, .min_user_interactions = 0}), HasSubstr("fewer than 1"));
  EXPECT_THAT(refusal_of([] { read_interactions("none", {.min_item_count = -1}); }),
              HasSubstr("--min-item-count: -1; must be at least 0"));
  EXPECT_THAT(refusal("1 2 3\n2 3 4\n", {}), Not(EndsWith("--min-item-count")));
}

TEST(TooManyInteractions, AreRefusedBeforeTheMemoryIsFull) {
  RawInteractions many;
  many.interactions.resize(std::size_t{1} << 22);  // 100 MB
  many.make_room("ratings", 1);
  EXPECT_EQ(many.interactions.capacity(), std::size_t{1} << 23);
  many.interactions.resize(std::size_t{1} << 23);
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0;
  for (int column = 0; column < 6; ++column) statm >> pages;
  rlimit before{};
  ::getrlimit(RLIMIT_DATA, &before);
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const rlimit now{pages * page + (std::uint64_t{300} << 20), before.rlim_max};  // the next step needs 400 MB
  ::setrlimit(RLIMIT_DATA, &now);
  const std::string message = refusal_of([&] { many.make_room("ratings", 1); });
  ::setrlimit(RLIMIT_DATA, &before);
  EXPECT_THAT(message, MatchesRegex("ratings: more than 8388607 interactions, and .* of memory are available; "
                                    "give a smaller data set"));
}

}  // namespace broken_interactions_test
}  // namespace gainlens::data
