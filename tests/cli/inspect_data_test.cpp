// `gainlens inspect` on a data set.
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace gainlens::testing {
namespace inspect_data_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

class InspectData : public ::testing::Test {
 protected:
  ProgramResult inspect(std::string_view content, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"inspect", write_file(folder_.path() / "data.txt", content)};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }
  TemporaryFolder folder_;
};

// Training counts of the items 1 to 5: 3, 1, 2, 1, 0. In order of (count, id): 5, 2, 4, 3, 1.
constexpr const char* five_users = "a 1 2 1\nb 1 2 1\nc 1 2 3\nd 2 3 3 2 4\ne 4 3 5\nf 1 9\n";

TEST_F(InspectData, ForPeople) {
  const auto result = inspect(five_users);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.out,
            "kind               data set\n"
            "format             sequences\n"
            "users              5\n"
            "items              5\n"
            "interactions       17\n"
            "density            68.0000% of all pairs of a user and an item\n"
            "dropped            1 user (fewer than 3 interactions), 1 item (of dropped users alone)\n"
            "duplicates         4 interactions of the file with an item that the user has had before; all are kept\n"
            "ties               none: the file has no times, and its order is kept\n"
            "sequence length    3 to 5, median 3\n"
            "split checksum     84149e491a75719691cb169e58891eca9c5b5ff1da91191db102763a268004ed\n"
            "item quintile 1    1 test, target count at most 0; means: target count 0.0, known items 2.0\n"
            "item quintile 2    0 tests, target count 0 to 1\n"
            "item quintile 3    1 test, target count 1; means: target count 1.0, known items 4.0\n"
            "item quintile 4    1 test, target count 1 to 2; means: target count 2.0, known items 2.0\n"
            "item quintile 5    2 tests, target count 2 or more; means: target count 3.0, known items 2.0\n"
            "user quintile 1    4 tests, training items at most 1; means: target count 2.0, known items 2.0\n"
            "user quintile 2    1 test, training items 2 or more; means: target count 1.0, known items 4.0\n"
            "correlation        -0.3430 between known items and target count\n"
            "usable             yes\n");
}

TEST_F(InspectData, ForPrograms) {
  const auto result =
      inspect(gzipped("u::a::5::1\nu::b::5::1\nu::a::5::0\nu::c::5::2\nv::a::1::7\nv::b::1::8\nv::a::1::9\n"),
              {"--json", "--min-item-count", "2", "--ties", "random:3"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Json found = Json::parse(result.out);
  EXPECT_EQ(found.at("kind"), "data set");
  EXPECT_EQ(found.at("format"), "movielens");
  EXPECT_EQ(found.at("users"), 2);
  EXPECT_EQ(found.at("items"), 2);
  EXPECT_EQ(found.at("interactions"), 6);
  EXPECT_DOUBLE_EQ(found.at("density").get<double>(), 1.5);
  EXPECT_EQ(found.at("dropped"),
            (Json{{"users", 0}, {"items", 1}, {"min_user_interactions", 3}, {"min_item_count", 2}}));
  EXPECT_EQ(found.at("duplicates"), (Json{{"interactions", 2}, {"policy", "keep"}}));
  EXPECT_FALSE(found.contains("columns"));
  EXPECT_EQ(found.at("ties"), (Json{{"timed", true}, {"interactions", 2}, {"policy", "random:3"}}));
  EXPECT_EQ(found.at("sequence_length"), (Json{{"min", 3}, {"median", 3.0}, {"max", 3}}));
  EXPECT_EQ(found.at("split_checksum").get<std::string>().size(), 64u);
  EXPECT_EQ(found.at("item_frequency").at("strata").size(), 5u);
  EXPECT_EQ(found.at("user_activity").at("strata")[0].at("tests"), 2);
  EXPECT_TRUE(found.at("length_frequency_correlation").is_null());  // both users know two items
  EXPECT_EQ(found.at("usable"), true);
}

TEST_F(InspectData, TablesAndWhichColumnsWereRead) {
  const std::string rows = "\n1,a,x,2024-01-01\n1,b,x,2024-01-02\n1,a,x,2024-01-03\n1,c,x,2024-01-04\n";
  const auto table = [&](const std::string& header, const char* name, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"inspect", write_file(folder_.path() / name, header + rows)};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  };
  const auto plain = table("userId,movieId,note,time", "ratings.csv", {});
  EXPECT_EQ(plain.exit_code, 0) << plain.error;
  EXPECT_THAT(plain.out, HasSubstr("format             table\n"
                                   "columns            user 'userId', item 'movieId', time 'time', as dates; split by "
                                   "commas\n"));
  EXPECT_THAT(plain.out, HasSubstr("duplicates         1 interaction of the file with an item that the user has had "
                                   "before; all are kept\n"));
  const auto named = table("who,what,note,when", "ratings",
                           {"--user-column", "who", "--item-column", "what", "--time-column", "when", "--delimiter",
                            "comma", "--duplicates", "last", "--json"});
  EXPECT_EQ(named.exit_code, 0) << named.error;
  const Json found = Json::parse(named.out);
  EXPECT_EQ(found.at("interactions"), 3);
  EXPECT_EQ(found.at("duplicates"), (Json{{"interactions", 1}, {"policy", "last"}}));
  EXPECT_EQ(found.at("columns"), (Json{{"user", "who"},
                                       {"item", "what"},
                                       {"time", "when"},
                                       {"dates", true},
                                       {"delimiter", ","},
                                       {"quotes", "rfc4180"}}));
  expect_refusal_line(table("userId,movieId,note,time", "ratings.csv", {"--item-column", "movieid"}),
                      "ratings.csv: has no column 'movieid' (--item-column); its columns are userId, movieId, note, "
                      "time; did you mean 'movieId'?");
  expect_refusal_line(table("user;item;note;time", "ratings.csv", {}), "give --delimiter semicolon");
  // What a header says cannot command the terminal.
  const auto planted = table("user,\x1b[2Jitem,note,time", "ratings.csv", {});
  expect_refusal_line(planted, "its columns are user, \\x1b[2Jitem, note, time");
  EXPECT_THAT(planted.out, Not(HasSubstr("\x1b")));
  for (const auto& [option, value] : {std::pair("--duplicates", "frist"), std::pair("--delimiter", "coma")})
    expect_refused(table("user,item,note,time", "ratings.csv", {option, value}), "did you mean '");
  expect_refused(
      table("user,item,note,time", "ratings.csv", {"--no-header", "--user-column", "1"}),
      "--no-header: the columns are called 1, 2, 3, ...; give --user-column, --item-column and --time-column");
}

TEST_F(InspectData, TiesChangeTheChecksum) {
  const std::string tied = "u::d::5::1\nu::c::5::1\nu::b::5::1\nu::a::5::1\n";
  const auto line = [&](const char* ties) {
    const std::string out = inspect(tied, {"--ties", ties}).out;
    const auto begin = out.find("split checksum");
    return out.substr(begin, out.find('\n', begin) - begin);
  };
  EXPECT_NE(line("file"), line("item"));
  EXPECT_EQ(line("file"), line("file"));
  EXPECT_THAT(
      inspect(tied, {"--ties", "item"}).out,
      HasSubstr("ties               4 interactions share their time with another one of their user; order: item"));
  EXPECT_THAT(inspect(tied).out,
              HasSubstr("correlation        not defined: one of the two is the same for all users\n"));
}

TEST_F(InspectData, WhatCannotBeUsedIsNamed) {
  const auto malformed = inspect("a::1::5::1\na::2\nb\n");
  expect_refusal_line(malformed,
                      "data.txt: line 2 has 2 fields: 'a::2' (1 other line is malformed); each line is user::item");
  EXPECT_THAT(malformed.out, HasSubstr("usable             no: "));
  const Json json = Json::parse(inspect("a::1\n", {"--json"}).out);
  EXPECT_EQ(json.at("usable"), false);
  EXPECT_THAT(json.at("reason").get<std::string>(), HasSubstr("line 1 has 2 fields"));
  expect_refusal_line(inspect("Some notes.\n"),
                      "the first line 'Some notes.' is not that of a data set; give RecBole's .inter");
  expect_refusal_line(inspect("1 2 3\n"), "each of its 1 users has fewer than 3 interactions");
  expect_refusal_line(inspect(""), "data.txt: empty; give a data set");
}

TEST_F(InspectData, MisspeltOptionsAreNoFaultOfTheData) {
  const auto ties = inspect(five_users, {"--ties", "itme"});
  expect_refusal_line(ties, "--ties: 'itme'; must be file, item or random:SEED; did you mean 'item'?");
  EXPECT_THAT(ties.out, IsEmpty());
  const auto count = inspect(five_users, {"--min-item-count", "-1"});
  expect_refusal_line(count, "--min-item-count: -1; must be at least 0");
  EXPECT_THAT(count.out, IsEmpty());
}

TEST_F(InspectData, FilesOfCheckpointsAreNotTakenForData) {
  const auto refusal = [&](const char* name, std::string_view content) {
    const auto result = run_gainlens({"inspect", write_file(folder_.path() / name, content)});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.out, StartsWith("kind               checkpoint\n")) << name;
    return result.error;
  };
  for (const char* name : {"config.json", "model.safetensors", "model.bin", "model.pt"})
    EXPECT_THAT(refusal(name, "{}\n"), HasSubstr("a file; give the folder that holds config.json")) << name;
  EXPECT_THAT(refusal("blob", "GGUF\x03"), HasSubstr("a file; give the folder"));
  EXPECT_THAT(refusal("weights", std::string("\x10\0\0\0\0\0\0\0{\"a\": 1}       ", 24)), HasSubstr("a file; give"));
}

TEST_F(InspectData, PublicDataHaveTheirKnownNumbers) {
  const auto path = shared_data("amazon/Sports_and_Outdoors.txt.gz");
  if (!path) GTEST_SKIP() << "no ../shared/data/amazon/Sports_and_Outdoors.txt.gz";
  const auto result = run_gainlens({"inspect", *path});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, AllOf(HasSubstr("users              35598\n"), HasSubstr("items              18357\n"),
                                HasSubstr("interactions       296337\n"),
                                HasSubstr("item quintile 1    6782 tests, target count at most 4; means: "),
                                HasSubstr("item quintile 2    3326 tests, target count 4 to 6; means: "),
                                HasSubstr("item quintile 5    15483 tests, target count 15 or more; means: "),
                                Not(HasSubstr("nan"))));
  const Json found = Json::parse(run_gainlens({"inspect", *path, "--json"}).out);
  EXPECT_THAT(found.at("item_frequency").at("edges").get<std::vector<int>>(), ElementsAre(4, 6, 8, 15));
}

}  // namespace inspect_data_test
}  // namespace gainlens::testing
