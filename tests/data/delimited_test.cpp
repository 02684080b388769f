#include "data/delimited.h"

#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gainlens::data {
namespace delimited_test {

using ::testing::ElementsAre;
using testing::refusal_of;

std::vector<std::string> fields_of(std::string_view line, char delimiter = ',') {
  std::vector<std::string> fields = {"left", "over", "from", "another", "line"};
  EXPECT_EQ(split_fields(line, delimiter, fields), "") << line;
  return fields;
}

std::string fault_of(std::string_view line) {
  std::vector<std::string> fields;
  return split_fields(line, ',', fields);
}

TEST(SplitFields, ByRfc4180) {
  EXPECT_THAT(fields_of("a,b,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(fields_of(""), ElementsAre(""));
  EXPECT_THAT(fields_of(",a,,"), ElementsAre("", "a", "", ""));
  EXPECT_THAT(fields_of(" a , b"), ElementsAre(" a ", " b"));
  EXPECT_THAT(fields_of("\"a\",\"b,c\",\"\""), ElementsAre("a", "b,c", ""));
  EXPECT_THAT(fields_of("\"say \"\"no\"\"\",\"\"\"\",x"), ElementsAre("say \"no\"", "\"", "x"));
  EXPECT_THAT(fields_of("\"two\nlines\",b"), ElementsAre("two\nlines", "b"));
  EXPECT_THAT(fields_of("a\tb,c", '\t'), ElementsAre("a", "b,c"));
  EXPECT_THAT(fields_of("a;\"b;c\"", ';'), ElementsAre("a", "b;c"));
}

TEST(SplitFields, BrokenQuotesAreNamed) {
  EXPECT_EQ(fault_of("a,\"b"), "opens a quote that is never closed");
  EXPECT_EQ(fault_of("\"a\"\""), "opens a quote that is never closed");
  EXPECT_EQ(fault_of("\"a\"b,c"), "has text after the closing quote of a field");
  EXPECT_EQ(fault_of("\"a\" ,c"), "has text after the closing quote of a field");
  EXPECT_EQ(fault_of("12\",c"), "has a quote inside a field that does not begin with one");
}

std::vector<std::string> fields_with(Quotes quotes, std::string_view line) {
  std::vector<std::string> fields;
  EXPECT_EQ(split_fields(line, ';', fields, quotes), "") << line;
  return fields;
}

TEST(SplitFields, QuotesMayBeCharacters) {
  EXPECT_THAT(fields_with(Quotes::none, R"("a";b";"c)"), ElementsAre("\"a\"", "b\"", "\"c"));
  EXPECT_THAT(fields_with(Quotes::none, R"(\";)"), ElementsAre("\\\"", ""));
}

TEST(SplitFields, ABackslashMayMakeAQuoteACharacter) {
  EXPECT_THAT(fields_with(Quotes::backslash, R"("say \"no;\"";"";a\b)"), ElementsAre("say \"no;\"", "", "a\\b"));
  EXPECT_THAT(fields_with(Quotes::backslash, R"("C:\\";"a\nb";"two"" ways")"),
              ElementsAre("C:\\", "a\\nb", "two\" ways"));
  std::vector<std::string> fields;
  EXPECT_EQ(split_fields(R"("a\")", ';', fields, Quotes::backslash), "opens a quote that is never closed");
  EXPECT_EQ(split_fields(R"("say \"no\"")", ';', fields), "has text after the closing quote of a field");
}

TEST(Quotes, AreReadAndNamed) {
  for (const char* text : {"none", "rfc4180", "backslash"}) EXPECT_EQ(quotes_name(parse_quotes(text)), text);
  EXPECT_EQ(refusal_of([] { parse_quotes("non"); }),
            "--quotes: 'non'; must be rfc4180, backslash or none; did you mean 'none'?");
}

std::vector<std::string> lines_of(std::string_view content, Quotes quotes) {
  std::vector<std::string> found;
  DataLines lines(content, quotes);
  while (const auto line = lines.next()) found.push_back(std::to_string(line->number) + ":" + std::string(line->text));
  return found;
}

TEST(DataLines, HoldWhatStandsBetweenQuotes) {
  constexpr const char* content =
      "\xEF\xBB\xBF"
      "a,\"b\r\nc\"\r\n\"d\"\"\n\",e\n\nf\n \n";
  EXPECT_THAT(lines_of(content, Quotes::rfc4180), ElementsAre("1:a,\"b\r\nc\"", "3:\"d\"\"\n\",e", "5:", "6:f"));
  EXPECT_THAT(lines_of(content, Quotes::none), ElementsAre("1:a,\"b", "2:c\"", "3:\"d\"\"", "4:\",e", "5:", "6:f"));
  EXPECT_THAT(lines_of("a\n\"b\nc\nd", Quotes::rfc4180), ElementsAre("1:a", "2:\"b\nc\nd"));
  EXPECT_THAT(lines_of("\"a\\\"\nb\"\n\\\"c\"\nd", Quotes::backslash),
              ElementsAre("1:\"a\\\"\nb\"", "3:\\\"c\"", "4:d"));
}

TEST(Delimiters, AreReadFromTheCommandLineAndTheNameOfAFile) {
  for (const char* text : {"comma", ","}) EXPECT_EQ(parse_delimiter(text), ',');
  for (const char* text : {"tab", "\t", "\\t"}) EXPECT_EQ(parse_delimiter(text), '\t');
  EXPECT_EQ(parse_delimiter(";"), ';');
  EXPECT_EQ(plural_of(parse_delimiter("pipe")), "pipes");
  EXPECT_EQ(
      refusal_of([] { parse_delimiter("coma"); }),
      "--delimiter: 'coma'; must be comma, tab, semicolon or pipe, or the character itself; did you mean 'comma'?");
  for (const char* text : {"", ",,", "a", "\""}) EXPECT_NE(refusal_of([&] { parse_delimiter(text); }), "accepted");
  EXPECT_EQ(delimiter_of_file("ratings.csv"), ',');
  EXPECT_EQ(delimiter_of_file("Ratings.CSV.gz"), ',');
  EXPECT_EQ(delimiter_of_file("a.tsv"), '\t');
  EXPECT_EQ(delimiter_of_file("a.tab.gz"), '\t');
  for (const char* name : {"ratings.dat", "csv", "a.csv.zip", "a.gz", ""})
    EXPECT_EQ(delimiter_of_file(name), std::nullopt) << name;
}

}  // namespace delimited_test
}  // namespace gainlens::data
