#include "data/interactions.h"

#include "core/error.h"
#include "support/refusal.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace gainlens::data {
namespace interactions_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using testing::gzipped;
using ::testing::HasSubstr;
using testing::refusal_of;
using testing::write_file;

class InteractionsTest : public ::testing::Test {
 protected:
  Interactions read(std::string_view content, const InteractionOptions& options = {.min_user_interactions = 1}) {
    return read_interactions(write_file(folder_.path() / "data", content), options);
  }
  testing::TemporaryFolder folder_;
};

/// Names of the items of each user, in order.
std::map<std::string, std::string> sequences(const Interactions& data) {
  std::map<std::string, std::string> result;
  for (std::int64_t user = 0; user < data.user_count(); ++user) {
    std::string& items = result[data.users[static_cast<std::size_t>(user)]];
    for (const ItemId item : data.items_of(user)) {
      if (!items.empty()) items += ' ';
      items += data.items[static_cast<std::size_t>(item)];
    }
  }
  return result;
}

using ItemsOfUsers = std::map<std::string, std::string>;

std::string review(const std::string& user, const std::string& item, const std::string& time) {
  return R"({"reviewerID": ")" + user + R"(", "asin": ")" + item +
         R"(", "helpful": [0, {"asin": "inner"}], "reviewText": "caf\u00e9 \"quoted\" )" + "\xE2\x82\xAC" +
         R"(", "overall": 5.0, "unixReviewTime": )" + time + "}";
}

TEST_F(InteractionsTest, EveryFormatGivesTheSameInteractions) {
  const std::string recbole = "user_id:token\titem_id:token\ttimestamp:float\nu\t30\t5\nu\t4\t3\nv\t4\t1\nu\t200\t9\n";
  const std::string movielens = "u::30::5::5\nu::4::1.5::3\nv::4::3::1\nu::200::1::9\n";
  const std::string amazon = review("u", "30", "5") + "\n" + review("u", "4", "3.0") + "\n" + review("v", "4", "1") +
                             "\n" + review("u", "200", "9") + "\n";
  const std::map<std::string, std::string> contents = {
      {"recbole", recbole}, {"sequences", "u 4 30 200\nv 4\n"}, {"movielens", movielens}, {"amazon", amazon}};
  for (const auto& [format, content] : contents) {
    for (const std::string& bytes : {content, gzipped(content)}) {
      const Interactions data = read(bytes);
      EXPECT_EQ(format_name(data.format), format);
      EXPECT_THAT(data.users, ElementsAre("u", "v")) << format;
      EXPECT_THAT(data.items, ElementsAre("", "4", "30", "200")) << format;
      EXPECT_THAT(data.begin, ElementsAre(0, 3, 4)) << format;
      EXPECT_THAT(data.item, ElementsAre(1, 2, 3, 1)) << format;
      EXPECT_DOUBLE_EQ(data.density(), 4.0 / 6) << format;
      if (format == "sequences") {
        EXPECT_TRUE(data.time.empty());
      } else {
        EXPECT_THAT(data.time, ElementsAre(3, 5, 9, 1)) << format;
      }
    }
  }
}

TEST_F(InteractionsTest, RecBoleColumnsStandInAnyOrderBesideOthers) {
  const Interactions data = read(
      "rating:float\ttimestamp:float\titem_id:token\tgenre:token_seq\tuser_id:token\n"
      "4.5\t2e9\tb c\tDrama, Crime\tu\n3\t-1.5\ta\t\tu\n");
  EXPECT_EQ(sequences(data), (ItemsOfUsers{{"u", "a b c"}}));
  EXPECT_THAT(data.time, ElementsAre(-1.5, 2e9));
}

TEST_F(InteractionsTest, RecBoleWithoutTimesKeepsTheOrderOfTheFile) {
  const std::string content = "user_id:token\titem_id:token\nu\tz\nu\ta\nu\tz\n";
  const Interactions data = read(content);
  EXPECT_EQ(sequences(data), (ItemsOfUsers{{"u", "z a z"}}));  // a repeated item is no mistake where there is no time
  EXPECT_TRUE(data.time.empty());
  EXPECT_EQ(data.tied, 0);
  EXPECT_THAT([&] { read(content, {.ties = {TiePolicy::Kind::item}}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("has no times, so its order is that of the file")));
}

TEST_F(InteractionsTest, LineEndsByteOrderMarkAndBlankLinesAtTheEnd) {
  const ItemsOfUsers expected{{"1", "4 5 6"}, {"2", "5 6 4"}};
  for (const char* content : {"1 4 5 6\n2 5 6 4\n", "1 4 5 6\n2 5 6 4", "1 4 5 6\r\n2 5 6 4\r\n", "1 4 5 6\r\n2 5 6 4",
                              "\xEF\xBB\xBF"
                              "1 4 5 6\n2 5 6 4\n",
                              "1 4 5 6\n2 5 6 4\n\n \t\r\n\n", "1\t4  5 \t6 \n 2 5 6 4 \n"}) {
    EXPECT_EQ(sequences(read(content)), expected) << content;
  }
  // A tab at the end is an empty last column, not a blank to be ignored.
  EXPECT_EQ(read("user_id:token\titem_id:token\tnote:token\nu\ta\t\n").interaction_count(), 1);
}

TEST_F(InteractionsTest, BytesThatAreNotUtf8AreKept) {
  EXPECT_EQ(sequences(read("u\xE9::caf\xE9::5::1\n")), (ItemsOfUsers{{"u\xE9", "caf\xE9"}}));
}

TEST_F(InteractionsTest, ItemsAreNumberedByNameAndNotByLine) {
  EXPECT_THAT(read("u 10 9 2147483647\n").items, ElementsAre("", "9", "10", "2147483647"));
  EXPECT_THAT(read("u::10::1::1\nu::9::1::2\nu::0::1::3\n").items, ElementsAre("", "0", "9", "10"));
  // One name that is no number below 2^31, and all are put in order byte by byte.
  EXPECT_THAT(read("u::10::1::1\nu::9::1::2\nu::2147483648::1::3\n").items, ElementsAre("", "10", "2147483648", "9"));
  EXPECT_THAT(read("u::10::1::1\nu::9::1::2\nu::007::1::3\n").items, ElementsAre("", "007", "10", "9"));
  EXPECT_THAT(read("u::10::1::1\nu::9::1::2\nu::-1::1::3\n").items, ElementsAre("", "-1", "10", "9"));
  EXPECT_THAT(read("u::b::1::1\nu::\xC3\xA9::1::2\nu::B::1::3\n").items, ElementsAre("", "B", "b", "\xC3\xA9"));
}

TEST_F(InteractionsTest, UsersKeepTheOrderOfTheirFirstLine) {
  EXPECT_THAT(read("z::1::1::1\na::1::1::1\nz::2::1::0\n").users, ElementsAre("z", "a"));
}

TEST_F(InteractionsTest, DroppingIsDoneOnceItemsFirst) {
  // Item c has one interaction and is dropped; then w has two left and is dropped; then nobody has d.
  const std::string content =
      "u::a::1::1\nu::b::1::2\nu::a::1::3\nv::a::1::1\nv::b::1::2\nv::b::1::3\n"
      "w::c::1::1\nw::d::1::2\nw::d::1::3\n";
  const Interactions data = read(content, {.min_item_count = 2});
  EXPECT_EQ(sequences(data), (ItemsOfUsers{{"u", "a b a"}, {"v", "a b b"}}));
  EXPECT_EQ(data.dropped_users, 1);
  EXPECT_EQ(data.dropped_items, 2);
  EXPECT_THAT(data.items, ElementsAre("", "a", "b"));
  EXPECT_EQ(read(content).dropped_items, 0);
  EXPECT_EQ(read(content, {.min_item_count = 3}).interaction_count(), 6);  // a and b have exactly 3
  EXPECT_EQ(read("u 1 2 3\nv 4 5\n", {}).dropped_users, 1);                // three interactions are needed by default
}

TEST_F(InteractionsTest, DuplicatesAreRemovedInTimeAndBeforeAnythingIsDropped) {
  const std::string content = "u::a::1::5\nu::b::1::2\nu::a::1::1\nu::c::1::3\nu::a::1::9\nv::a::1::1\nv::a::1::2\n";
  const auto with = [&](Duplicates duplicates, std::int64_t least = 1) {
    return read(content, {.min_user_interactions = least, .duplicates = duplicates});
  };
  EXPECT_EQ(sequences(with(Duplicates::keep)), (ItemsOfUsers{{"u", "a b c a a"}, {"v", "a a"}}));
  EXPECT_EQ(sequences(with(Duplicates::first)), (ItemsOfUsers{{"u", "a b c"}, {"v", "a"}}));
  EXPECT_EQ(sequences(with(Duplicates::last)), (ItemsOfUsers{{"u", "b c a"}, {"v", "a"}}));
  EXPECT_EQ(sequences(with(Duplicates::exact)), sequences(with(Duplicates::keep)));  // no two are at the same time
  EXPECT_EQ(with(Duplicates::first, 2).dropped_users, 1);
  EXPECT_EQ(with(Duplicates::keep, 2).dropped_users, 0);
  EXPECT_EQ(
      read(content, {.min_item_count = 2, .min_user_interactions = 1, .duplicates = Duplicates::first}).dropped_items,
      2);  // a has two users, b and c have one
  for (const Duplicates any : {Duplicates::keep, Duplicates::first, Duplicates::last}) EXPECT_EQ(with(any).repeated, 3);
  EXPECT_EQ(sequences(read("u 3 1 3 2 1\n", {.min_user_interactions = 1, .duplicates = Duplicates::last})),
            (ItemsOfUsers{{"u", "3 2 1"}}));
  // Of lines at the same time the first or the last one stays, which is where the order of the file puts the item.
  const std::string same = "u::a::1::1\nu::b::1::1\nu::a::1::1\n";
  EXPECT_EQ(sequences(read(same, {.min_user_interactions = 1, .duplicates = Duplicates::first})),
            (ItemsOfUsers{{"u", "a b"}}));
  EXPECT_EQ(sequences(read(same, {.min_user_interactions = 1, .duplicates = Duplicates::last})),
            (ItemsOfUsers{{"u", "b a"}}));
  // A copy goes, and what was taken again later stays.
  const Interactions exact =
      read(same + "u::a::1::7\nu::a::2::7\n", {.min_user_interactions = 1, .duplicates = Duplicates::exact});
  EXPECT_EQ(sequences(exact), (ItemsOfUsers{{"u", "a b a"}}));
  EXPECT_EQ(exact.repeated, 3);
  EXPECT_THAT(
      refusal_of([&] { read("u 1 2 1\n", {.duplicates = Duplicates::exact}); }),
      HasSubstr("has no times; --duplicates exact needs them, to tell a copy from an item that was taken again"));
}

TEST_F(InteractionsTest, PairsAreOneLineForEachInteraction) {
  const ItemsOfUsers wanted = {{"u", "3 1 3"}, {"v", "2"}};
  const Interactions data = read("u 3\nv 2\nu\t1\r\nu  3 \n", {.min_user_interactions = 1});
  EXPECT_EQ(sequences(data), wanted);
  EXPECT_EQ(format_name(data.format), "pairs");
  EXPECT_TRUE(data.time.empty());
  EXPECT_EQ(data.repeated, 1);
  EXPECT_EQ(format_name(read("u 3 1 3\nv 2\n", {.min_user_interactions = 1}).format), "sequences");
  EXPECT_THAT(refusal_of([&] { read("u 3\nu 0\nu 07\n"); }),
              HasSubstr("line 2 has the item '0': 'u 0' (1 other line is malformed); each line is a pair `user item`"));
  // Most lines are pairs: which of both is meant cannot be told.
  EXPECT_THAT(refusal_of([&] { read("u 3\nu 2\nv 1 2\n"); }),
              AllOf(HasSubstr("line 2 repeats user 'u' of line 1: 'u 2'; each line is `user item item ...`"),
                    EndsWith("; or every line is a pair `user item`, and line 3 has 3 words")));
}

TEST(DuplicatesTest, AreReadAndNamed) {
  for (const char* text : {"keep", "exact", "first", "last"}) EXPECT_EQ(duplicates_name(parse_duplicates(text)), text);
  EXPECT_EQ(refusal_of([] { parse_duplicates("frist"); }),
            "--duplicates: 'frist'; must be keep, exact, first or last; did you mean 'first'?");
}

TEST_F(InteractionsTest, MovieLensRatingsWithTabs) {
  const Interactions data = read("196\t242\t3\t881250949\n196\t302\t5\t881250948\n22\t242\t1\t878887116\n");
  EXPECT_EQ(format_name(data.format), "movielens");
  EXPECT_EQ(sequences(data), (ItemsOfUsers{{"196", "302 242"}, {"22", "242"}}));
  EXPECT_THAT(data.time, ElementsAre(881250948, 881250949, 878887116));
  EXPECT_EQ(format_name(read("7\t242\t3\t88125094\n").format), "sequences");  // no time of a rating
}

constexpr const char* tied = "u::c::1::1\nu::d::1::2\nu::a::1::1\nu::b::1::1\nu::e::1::0\nu::f::1::2\n";

TEST_F(InteractionsTest, TiesFollowThePolicy) {
  const auto ordered = [&](const char* ties) {
    return sequences(read(tied, {.ties = parse_tie_policy(ties)})).at("u");
  };
  EXPECT_EQ(ordered("file"), "e c a b d f");
  EXPECT_EQ(ordered("item"), "e a b c d f");
  EXPECT_EQ(read(tied).tied, 5);
  std::map<std::string, int> seen;  // every order of both groups, and nothing else
  for (int seed = 0; seed < 300; ++seed) ++seen[ordered(("random:" + std::to_string(seed)).c_str())];
  EXPECT_EQ(seen.size(), 12u);  // 3! 2!
  for (const auto& [order, count] : seen) {
    EXPECT_EQ(order.substr(0, 2), "e ");
    EXPECT_GT(count, 8) << order;  // 25 are expected, with a standard deviation of 4.8
  }
}

TEST_F(InteractionsTest, RandomTiesDependOnTheUserAndTheSeedAlone) {
  const InteractionOptions options{.ties = {TiePolicy::Kind::random, 7}, .min_user_interactions = 1};
  const std::string alone = sequences(read(tied, options)).at("u");
  EXPECT_EQ(sequences(read(std::string("other::z::1::9\nother::y::1::9\n") + tied, options)).at("u"), alone);
  // Other lines first: the same set of interactions, the same order.
  EXPECT_EQ(
      sequences(read("u::f::1::2\nu::e::1::0\nu::b::1::1\nu::a::1::1\nu::d::1::2\nu::c::1::1\n", options)).at("u"),
      alone);
  // Users with the same interactions are not shuffled alike.
  std::string many;
  for (const char* user : {"p", "q", "r", "s", "t"}) {
    for (char item = 'a'; item < 'k'; ++item) many += std::string(user) + "::" + item + "::1::1\n";
  }
  const ItemsOfUsers all = sequences(read(many, options));
  for (const auto& one : all) {
    const auto alike = [&](const auto& other) { return other.second == one.second; };
    EXPECT_EQ(std::count_if(all.begin(), all.end(), alike), 1);
  }
  // Another user's item that is no number changes the order of ids, but not the shuffle.
  const std::string numbers = "u::9::1::1\nu::10::1::1\nu::100::1::1\nu::11::1::1\n";
  EXPECT_EQ(sequences(read(numbers, options)).at("u"), sequences(read(numbers + "v::x::1::1\n", options)).at("u"));
}

TEST(TiePolicyTest, IsReadAndNamed) {
  for (const char* text : {"file", "item", "random:0", "random:18446744073709551615"})
    EXPECT_EQ(parse_tie_policy(text).name(), text);
  const auto refusal = [](const char* text) { return refusal_of([&] { parse_tie_policy(text); }); };
  EXPECT_EQ(refusal("itme"), "--ties: 'itme'; must be file, item or random:SEED; did you mean 'item'?");
  EXPECT_THAT(refusal("randm:3"), HasSubstr("did you mean 'random'?"));
  EXPECT_THAT(refusal("file:3"), HasSubstr("must be file, item or random:SEED"));
  for (const char* text : {"random", "random:", "random:-1", "random:1.5", "random:18446744073709551616", "random:7 "})
    EXPECT_THAT(refusal(text), HasSubstr("the seed must be a whole number from 0 to 2^64 - 1")) << text;
}

}  // namespace interactions_test
}  // namespace gainlens::data
