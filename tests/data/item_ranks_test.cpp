#include "data/item_ranks.h"

#include "core/ranking_metrics.h"
#include "data/run_users.h"
#include "support/refusal.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace gainlens::data {
namespace item_ranks_test {

using ::testing::ElementsAre;
using testing::refusal_of;
using ::testing::StartsWith;

class ItemRanksTest : public ::testing::Test {
 protected:
  ItemRanks read(const std::string& text, HeldOut held_out = HeldOut::test, const char* name = "theirs.csv") {
    return read_item_ranks(testing::write_file(folder_.path() / name, text), split_, held_out);
  }
  /// The message without the path in front.
  std::string refusal(const std::string& text) {
    const std::string message = refusal_of([&] { read(text); });
    const std::string start = (folder_.path() / "theirs.csv").string() + ": ";
    EXPECT_THAT(message, StartsWith(start));
    EXPECT_EQ(std::count_if(message.begin(), message.end(), [](unsigned char c) { return c < 0x20; }), 0) << message;
    return message.substr(std::min(start.size(), message.size()));
  }
  testing::TemporaryFolder folder_;
  // Test items: a 3, =b 2, c 1; validation items: 2, 3, 3. Items: 1 to 4.
  LeaveOneOut split_{read_interactions(testing::write_file(folder_.path() / "data", "a 1 2 3\n=b 4 1 3 2\nc 2 3 1\n"))};
};

TEST_F(ItemRanksTest, LinesMayStandInAnyOrder) {
  const ItemRanks one = read("rank,note,target,user\n2,,1,c\n1,x,3,a\n3.5,,2,=b\n");
  EXPECT_THAT(one.seeds, ElementsAre(0u));
  EXPECT_THAT(one.ranks, ElementsAre(ElementsAre(1, 3.5, 2)));
  const ItemRanks two = read("user,target,rank,seed\na,3,1,7\na,3,2,5\n'=b,2,4,5\n\"=b\",2,1,7\nc,1,3,5\nc,1,1,7\n");
  EXPECT_THAT(two.seeds, ElementsAre(5u, 7u));
  EXPECT_THAT(two.ranks, ElementsAre(ElementsAre(2, 4, 3), ElementsAre(1, 1, 1)));
  EXPECT_THAT(read("user\ttarget\trank\na\t2\t1\n=b\t3\t1\nc\t3\t2\n", HeldOut::validation, "theirs.tsv").ranks,
              ElementsAre(ElementsAre(1, 1, 2)));
  EXPECT_THAT(read(testing::gzipped("user,target,rank\na,3,1\n=b,2,1\nc,1,1\n"), HeldOut::test, "theirs.csv.gz").seeds,
              ElementsAre(0u));
}

TEST_F(ItemRanksTest, NamesThatBeginWithApostrophesComeBackAsTheyWereWritten) {
  const auto data = testing::write_file(folder_.path() / "more", "=b 1 2 3\n'=b 3 1 2\n'c 2 3 1\n");
  split_ = LeaveOneOut(read_interactions(data));
  EXPECT_THAT(read("user,target,rank\n'=b,3,1\n''=b,2,2\n'c,1,3\n").ranks, ElementsAre(ElementsAre(1, 2, 3)));
  EXPECT_THAT(refusal("user,target,rank\n''c,1,1\n"), StartsWith("line 2: user '''c' is not among the 3 users"));
}

TEST_F(ItemRanksTest, WhatDoesNotFitTheSplitIsNamed) {
  const std::string head = "user,target,rank\na,3,1\n";
  EXPECT_EQ(refusal(head + "x,1,1\n"), "line 3: user 'x' is not among the 3 users of the data");
  EXPECT_EQ(
      refusal(head + "c,3,1\n"),
      "line 3: user 'c' has the target '3', and the test item of the data is '1'; ranks and data have to have the "
      "same split");
  EXPECT_EQ(refusal(head + "c,1,1\n"), "has no line for user '=b'; ranks of all users of the data are needed");
  EXPECT_EQ(refusal(head), "has no line for user '=b' (and 1 other user); ranks of all users of the data are needed");
  EXPECT_EQ(refusal(head + "a,3,1\n"), "line 3: user 'a' stands twice");
  EXPECT_EQ(refusal("user,target,rank,seed\na,3,1,4\na,3,1,4\n"), "line 3: user 'a' stands twice with seed 4");
  for (const char* rank : {"0", "-1", "5", "1.25", "", "x", "nan", "inf"})
    EXPECT_EQ(refusal(std::string("user,target,rank\na,3,") + rank + "\n"),
              std::string("line 2 has the rank '") + rank +
                  "'; must be 1, the best, to 4, the number of items, in steps of a half");
  for (const char* seed : {"", "-1", "1.5", "x", "18446744073709551616"})
    EXPECT_THAT(refusal(std::string("user,target,rank,seed\na,3,1,") + seed + "\n"),
                StartsWith("line 2 has the seed '"));
  EXPECT_EQ(
      refusal("user,target,position\n"),
      "has no column 'rank'; its columns are user, target, position; user, target and rank are needed, and seed if "
      "there are several");
  EXPECT_THAT(refusal("usr,target,rank\n"), ::testing::EndsWith("did you mean 'usr'?"));
  EXPECT_EQ(refusal("user,user,target,rank\n"), "has the column 'user' twice; rename one");
  EXPECT_EQ(refusal("user,target,rank\na,3\n"), "line 2 has 2 of 3 columns");
  EXPECT_THAT(refusal("user,target,rank\n\"a,3,1\n"), StartsWith("line 2 opens a quote that is never closed"));
  EXPECT_EQ(refusal("user,target,rank\n"), "has no ranks, only a header");
  EXPECT_THAT(refusal("\n"), StartsWith("empty; give a table with the columns"));
  EXPECT_EQ(refusal(head + "\x1b[2J,1,1\n"), "line 3: user '\\x1b[2J' is not among the 3 users of the data");
}

TEST_F(ItemRanksTest, BecomeARun) {
  const ItemRanks ranks{{5, 7}, {{1, 2, 3}, {4, 1, 2.5}}};
  const runfile::RecommendRun run = run_of_ranks(ranks, split_, "theirs", "data");
  EXPECT_THAT(run.arms, ElementsAre("theirs"));
  EXPECT_THAT(run.seeds, ElementsAre(5u, 7u));
  EXPECT_THAT(run.units, ElementsAre("a", "=b", "c"));
  EXPECT_THAT(run.target, ElementsAre(3, 2, 1));
  EXPECT_THAT(run.history_length, ElementsAre(2, 3, 2));
  EXPECT_THAT(run.training_length, ElementsAre(1, 2, 1));
  EXPECT_THAT(run.item_train_count, ElementsAre(2, 1, 0, 1));
  EXPECT_EQ(run.split(), split_.checksum());
  EXPECT_EQ(run.data_name(), "data");
  EXPECT_THAT(runfile::ranks_of(*run.result(0, 1)), ElementsAre(4, 1, 2.5));
  EXPECT_DOUBLE_EQ(run.result(0, 1)->test.at("mrr"), (1 / 4.0 + 1 + 1 / 2.5) / 3);
  EXPECT_EQ(run.result(0, 0)->best_epoch, 0);
  // A run of this program could be stored so: every metric is there.
  runfile::write_recommend_run(folder_.path() / "run.h5", run);
  EXPECT_THAT(runfile::read_recommend_run(folder_.path() / "run.h5").arms, ElementsAre("theirs"));
}

TEST(RanksFiles, AreKnownByTheirNames) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"a.csv", "a.tsv", "b/a.CSV.gz"}) EXPECT_TRUE(is_ranks_file(name)) << name;
  for (const char* name : {"run", "run.h5", "a.gz", "csv"}) EXPECT_FALSE(is_ranks_file(name)) << name;
  std::filesystem::create_directory(folder.path() / "run.csv");
  EXPECT_FALSE(is_ranks_file(folder.path() / "run.csv"));  // a run folder may have any name
  EXPECT_EQ(stem_of_table("x/theirs.csv.gz"), "theirs");
  EXPECT_EQ(stem_of_table("their.model.tsv"), "their.model");
}

}  // namespace item_ranks_test
}  // namespace gainlens::data
