// Tables (CSV, TSV) and JSON lines whose columns and keys are named or recognised.
#include "data/interactions.h"
#include "support/refusal.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace gainlens::data {
namespace tables_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::refusal_of;
using ::testing::StartsWith;

class Tables : public ::testing::Test {
 protected:
  Interactions read(std::string_view content, const ColumnOptions& columns = {}, const char* name = "data.csv") {
    return read_interactions(testing::write_file(folder_.path() / name, content),
                             {.min_user_interactions = 1, .columns = columns});
  }
  /// The message without the path in front.
  std::string refusal(std::string_view content, const ColumnOptions& columns = {}, const char* name = "data.csv") {
    const std::string message = refusal_of([&] { read(content, columns, name); });
    const std::string start = (folder_.path() / name).string() + ": ";
    EXPECT_THAT(message, StartsWith(start));
    EXPECT_EQ(std::count_if(message.begin(), message.end(), [](unsigned char c) { return c < 0x20; }), 0) << message;
    return message.substr(std::min(start.size(), message.size()));
  }
  testing::TemporaryFolder folder_;
};

void expect_same(const Interactions& data, const std::string& what) {
  EXPECT_THAT(data.users, ElementsAre("u", "v")) << what;
  EXPECT_THAT(data.items, ElementsAre("", "4", "30", "200")) << what;
  EXPECT_THAT(data.begin, ElementsAre(0, 3, 4)) << what;
  EXPECT_THAT(data.item, ElementsAre(1, 2, 3, 1)) << what;
  EXPECT_THAT(data.time, ElementsAre(3, 5, 9, 1)) << what;
}

TEST_F(Tables, EveryWayOfWritingGivesTheSameInteractions) {
  const std::string csv = "userId,movieId,rating,timestamp\nu,30,5,5\nu,4,4,3\nv,4,4,1\nu,200,1,9\n";
  expect_same(read(csv), "csv");
  expect_same(read("\xEF\xBB\xBF" + csv), "byte order mark");
  expect_same(read(testing::gzipped(csv), {}, "data.csv.gz"), "gzip");
  std::string other = csv;
  std::replace(other.begin(), other.end(), ',', '\t');
  expect_same(read(other, {}, "data.tsv"), "tsv");
  expect_same(read(other, {.delimiter = '\t'}, "data"), "tabs by option");
  std::replace(other.begin(), other.end(), '\t', ';');
  expect_same(read(other, {.delimiter = ';'}), "semicolons");
  expect_same(read("\"time\",\"note\",\"item\",\"user\"\r\n5,\"a, \"\"b\"\"\r\nc\",\"30\",\"u\"\r\n3,,4,u\r\n1,,4,v\r\n"
                   "9,,200,u\r\n\r\n"),
              "quotes");
  expect_same(read("u,30,5,5\nu,4,4,3\nv,4,4,1\nu,200,1,9\n", {.user = "1", .item = "2", .time = "4", .header = false}),
              "no header");
  expect_same(read(R"({"user_id": "u", "parent_asin": "30", "timestamp": 5, "x": {"user_id": 1}})"
                   "\n"
                   R"({"timestamp": "3.0", "parent_asin": 4, "user_id": "u"})"
                   "\n"
                   R"({"user_id": "v", "parent_asin": 4, "timestamp": 1})"
                   "\n"
                   R"({"user_id": "u", "parent_asin": 200, "timestamp": 9.0})"
                   "\n"),
              "json");
}

TEST_F(Tables, WhichColumnsWereReadIsKept) {
  const auto columns = read("a,b,c,user_id\n1,2,2024-01-31,3\n", {.item = "b", .time = "c"}).columns;
  ASSERT_TRUE(columns);
  EXPECT_EQ(columns->user, "user_id");
  EXPECT_EQ(columns->item, "b");
  EXPECT_EQ(columns->time, "c");
  EXPECT_EQ(columns->delimiter, ',');
  EXPECT_TRUE(columns->dates);
  const Interactions json =
      read(R"({"who": "u", "what": "i", "when": 1})", {.user = "who", .item = "what", .time = "none"});
  EXPECT_EQ(format_name(json.format), "json");
  EXPECT_EQ(json.columns->time, std::nullopt);
  EXPECT_EQ(json.columns->delimiter, std::nullopt);
  EXPECT_TRUE(json.time.empty());
  // What earlier versions called amazon keeps its name in stored requests.
  EXPECT_EQ(format_name(read(R"({"reviewerID": "u", "asin": "i", "unixReviewTime": 1})").format), "amazon");
}

TEST_F(Tables, DatesAreSecondsOfUtc) {
  EXPECT_THAT(read("user,item,date\nu,a,2024-02-29\nu,b,1970-01-01\n").time, ElementsAre(0, 1709164800));
  EXPECT_THAT(
      refusal("user,item,date\nu,a,2024-02-29\nu,b,17\n"),
      StartsWith("line 3 has the time 17, and line 2 has a date: 'u,b,17'; each line has 3 columns split by com"));
  EXPECT_THAT(
      refusal("user,item,date\nu,a,29.02.2024\n"),
      StartsWith("line 2 has the time '29.02.2024', which is neither a finite number nor a date such as 2024-"));
}

TEST_F(Tables, ColumnsAreNamedOrRecognised) {
  EXPECT_EQ(
      refusal("userId,movieId,timestamp\nu,a,1\n", {.user = "userID"}),
      "has no column 'userID' (--user-column); its columns are userId, movieId, timestamp; did you mean 'userId'?");
  EXPECT_EQ(refusal("who,item\nu,a\n"),
            "no column has a known name for users, such as user_id; name it with --user-column; its columns are who, "
            "item");
  EXPECT_EQ(refusal("user,asin,parent_asin\nu,a,b\n"),
            "the columns asin, parent_asin could all hold items; name one with --item-column");
  EXPECT_EQ(read("user,asin,parent_asin\nu,a,b\n", {.item = "asin", .time = "none"}).items[1], "a");
  EXPECT_THAT(
      refusal("user,item,when\nu,a,1\n"),
      StartsWith("no column has a known name for times, such as timestamp; name it with --time-column, or give"));
  EXPECT_TRUE(read("user,item\nu,b\nu,a\n").time.empty());  // no other column could hold times
  EXPECT_THAT(refusal("user,item,time,date\nu,a,1,2\n"), StartsWith("the columns time, date could all hold times"));
  EXPECT_THAT(refusal("user,item,item\nu,a,1\n", {.item = "item"}), StartsWith("has the column 'item' twice"));
  EXPECT_THAT(refusal("user,item,time\nu,a,1\n", {.item = "user"}),
              StartsWith("the column 'user' cannot hold users and "));
  EXPECT_THAT(refusal("user,item,time\nu,a,1\n", {.time = "item"}),
              StartsWith("the column 'item' cannot hold items and "));
  EXPECT_THAT(refusal("user,item,none\nu,a,1\n", {.time = "none"}), HasSubstr("which --time-column cannot name"));
  EXPECT_THAT(refusal("1,1193,5,978300760\n1,661,3,978302109\n"),
              HasSubstr("if the first line is no header, give --no-"));
  EXPECT_THAT(refusal("u,a,1\n", {.user = "1", .item = "4", .time = "3", .header = false}),
              StartsWith("has no column '4' (--item-column); its columns are 1, 2, 3"));
  std::string wide = "user";
  for (int i = 0; i < 1000; ++i) wide += ",column" + std::to_string(i);
  EXPECT_THAT(refusal(wide + "\n"), HasSubstr("and 989 more"));
  EXPECT_EQ(refusal(R"({"who": "u", "item": "i"})"),
            "no key has a known name for users, such as user_id; name it with --user-column; its keys are who, item");
  EXPECT_EQ(refusal("user\x1b[2J,item\nu,a\n", {.user = "user"}),
            "has no column 'user' (--user-column); its columns are user\\x1b[2J, item");
}

TEST_F(Tables, AnotherDelimiterIsNamed) {
  EXPECT_EQ(
      refusal("user;item;time\nu;a;1\n"),
      "the header 'user;item;time' is one column if commas split it; if it is split by semicolons, give --delimiter "
      "semicolon");
  EXPECT_THAT(refusal("user\titem\ttime\nu\ta\t1\n"), HasSubstr("give --delimiter tab"));
  EXPECT_THAT(refusal("user,item,time\nu,a,1\n", {}, "data.tsv"),
              HasSubstr("is one column if tabs split it; if it is spl"));
  // With quotes, commas split the header into nothing that can be read.
  EXPECT_EQ(refusal("\"user\";\"item\"\n\"u\";\"a\"\n"),
            "the header '\"user\";\"item\"' has text after the closing quote of a field if commas split it; if it is "
            "split by semicolons, give --delimiter semicolon");
}

TEST_F(Tables, MalformedLinesAreNamedAndCounted) {
  EXPECT_EQ(
      refusal("user,item,time\nu,a,1\nu,b\nu,c,3,4\n"),
      "line 3 has 2 of 3 columns: 'u,b' (1 other line is malformed); each line has 3 columns split by commas, with "
      "quotes as in RFC 4180 (--quotes none or backslash reads others)");
  EXPECT_THAT(refusal("user,item,time\n,a,1\n"), StartsWith("line 2 has an empty user: ',a,1'"));
  EXPECT_THAT(refusal("user,item,time\nu,,1\n"), StartsWith("line 2 has an empty item"));
  EXPECT_THAT(refusal("user,item,time\nu,a,\n"), StartsWith("line 2 has the time '', which is neither"));
  EXPECT_THAT(refusal("user,item,time\nu,a,1\n\nu,b,2\n"), StartsWith("line 3 has 1 of 3 columns: ''"));
  EXPECT_THAT(refusal("user,item,note\nu,\"a\nb\",1\n", {.time = "none"}),
              StartsWith("line 2 has a control character in its item: 'u,\"a\\x0ab\",1'"));
  EXPECT_THAT(refusal("user,item\nu,\"a\nu,b\nu,c\n"),
              StartsWith("line 2 opens a quote that is never closed: 'u,\"a\\x0a"));
  EXPECT_THAT(refusal("user,item\nu,12\"\nu,b\n\"u\"x,c\n"), StartsWith("line 2 has a quote inside a field"));
  EXPECT_THAT(refusal("user,\"item\nu,a\n"), StartsWith("line 1 opens a quote that is never closed"));
  EXPECT_EQ(refusal("user,item\n"), "no interactions, only a header; give a data set");
  EXPECT_THAT(refusal("{\"user\": \"u\"\n"), StartsWith("line 1 is not valid JSON"));
  EXPECT_THAT(refusal(R"({"user": "u", "item": "i"})"
                      "\n"
                      R"({"user": "u"})"),
              StartsWith("line 2 has no key 'item'"));
}

/// Titles with quotes that belong to them.
TEST_F(Tables, QuotesMayBeCharacters) {
  const std::string stray = "u\t3\t4\t\"Song\" (12\" mix)\nu\t5\t30\tx\nv\t1\t4\t\"\nu\t9\t200\t\n";
  ColumnOptions columns = {.user = "1", .item = "3", .time = "2", .header = false};
  EXPECT_THAT(refusal(stray, columns, "a.tsv"), HasSubstr("--quotes none or backslash reads others"));
  columns.quotes = Quotes::none;
  const Interactions data = read(stray, columns, "a.tsv");
  expect_same(data, "stray quotes");
  EXPECT_EQ(data.columns->quotes, Quotes::none);
  const std::string escaped = R"("user";"title";"item";"time")"
                              "\n"
                              R"("u";"a \"b;\" c";"4";"3")"
                              "\n"
                              R"("u";"";"30";"5")"
                              "\n"
                              R"("v";"\\";"4";"1")"
                              "\n"
                              R"("u";"x";"200";"9")";
  EXPECT_THAT(refusal(escaped, {.delimiter = ';'}), HasSubstr("line 2 has text after the closing quote"));
  expect_same(read(escaped, {.delimiter = ';', .quotes = Quotes::backslash}), "escaped quotes");
  EXPECT_THAT(refusal(escaped, {.delimiter = ';', .quotes = Quotes::none}), HasSubstr("no column has a known name"));
}

TEST_F(Tables, OptionsForOtherFormatsAreRefused) {
  const std::string rating = "u::a::5::1\n";
  EXPECT_THAT(refusal(rating, {.quotes = Quotes::none}, "data"),
              StartsWith("--quotes is for tables; give --delimiter"));
  EXPECT_THAT(refusal("{}", {.quotes = Quotes::none}), StartsWith("--quotes is for tables, and this file has JSON li"));
  EXPECT_THAT(refusal(rating, {.user = "user"}, "data"),
              StartsWith("columns are named, and it is no JSON and not called"));
  EXPECT_THAT(refusal(rating, {.header = false}, "data"),
              StartsWith("--no-header is for tables; give --delimiter too"));
  EXPECT_THAT(refusal("{}", {.header = false}), StartsWith("--no-header is for tables, and this file has JSON lines"));
  // Lines that another format explains are of that format, whatever the file is called, unless a table is asked for.
  EXPECT_EQ(format_name(read(rating).format), "movielens");
  EXPECT_EQ(format_name(read("1\t2\t3\n", {}, "data.tsv").format), "sequences");
  EXPECT_EQ(format_name(read("1\t2\t3\n", {.user = "1", .item = "2", .time = "3", .header = false}, "data.tsv").format),
            "table");
}

}  // namespace tables_test
}  // namespace gainlens::data
