#include "data/temporal_cut.h"

#include "core/error.h"
#include "data/leave_one_out.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::data {
namespace temporal_cut_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::refusal_of;
using testing::TemporaryFolder;
using testing::write_file;

TEST(SplitPolicy, HasOneName) {
  for (const char* name : {"leave-one-out", "temporal:0.9", "temporal:0.05"})
    EXPECT_EQ(parse_split_policy(name).name(), name);
  // A time is a number or a date, which is named by its seconds.
  EXPECT_EQ(parse_split_policy("temporal:1388534400").moment, 1388534400);
  for (const char* date : {"2014-01-01", "2014-01-01T00:00:00Z", "2014-01-01 01:30+01:30", "1388534400"})
    EXPECT_EQ(parse_split_policy(std::string("temporal:") + date).name(), "temporal:1388534400") << date;
  EXPECT_EQ(parse_split_policy(parse_split_policy("temporal:1969-12-31").name()).moment, -86400);
  EXPECT_THAT(refusal_of([] { parse_split_policy("temproal:0.9"); }), HasSubstr("did you mean 'temporal'"));
  for (const char* wrong : {"temporal", "temporal:", "temporal:0", "temporal:1", "temporal:x", "temporal:-0.5",
                            "temporal:2014-02-30", "temporal:31.12.2014", "temporal:1e16"})
    EXPECT_THAT(refusal_of([&] { parse_split_policy(wrong); }), HasSubstr("must lie between 0 and 1")) << wrong;
}

class TemporalSplit : public ::testing::Test {
 protected:
  /// @param lines  of user, item and time
  Interactions read(const std::string& lines, double share, std::int64_t min_item_count = 0) {
    const auto path = write_file(folder_.path() / "d.csv", "user,item,time\n" + lines);
    return read_interactions(path, {.min_item_count = min_item_count, .split = {share}});
  }
  std::vector<std::string> names(const Interactions& data, std::int64_t user) {
    std::vector<std::string> found;
    for (const ItemId item : data.items_of(user)) found.push_back(data.items[static_cast<std::size_t>(item)]);
    return found;
  }
  TemporaryFolder folder_;
};

// Ten interactions; T = 60 is the time at place 6.
constexpr const char* ten =
    "early,a,0\nearly,b,10\nearly,c,20\n"           // for training alone: nothing from T on
    "both,a,30\nboth,b,40\nboth,d,90\nboth,c,70\n"  // tested with c; d is left out
    "late,a,50\nlate,e,60\nlate,b,80\n";  // one item before T: no test, so all from T on is left out, and one is too
                                          // few

TEST_F(TemporalSplit, CutsAllUsersAtOneMoment) {
  const Interactions data = read(ten, 0.6);
  EXPECT_EQ(data.split_time, 60);
  EXPECT_THAT(data.users, ElementsAre("both", "early"));
  EXPECT_EQ(data.untested, 1);
  EXPECT_EQ(data.later, 3);
  EXPECT_EQ(data.dropped_users, 1);
  EXPECT_THAT(names(data, 0), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names(data, 1), ElementsAre("a", "b", "c"));
  EXPECT_THAT(data.items, ElementsAre("", "a", "b", "c"));  // e and d are left out
}

TEST_F(TemporalSplit, TheTimeMayBeGiven) {
  const auto at = [&](const char* split, const std::string& lines = ten) {
    const auto path = write_file(folder_.path() / "d.csv", "user,item,time\n" + lines);
    return read_interactions(path, {.split = parse_split_policy(split)});
  };
  EXPECT_EQ(LeaveOneOut(at("temporal:60")).checksum(), LeaveOneOut(read(ten, 0.6)).checksum());
  EXPECT_EQ(at("temporal:60").split_time, 60);
  const std::string dates = "u,a,2014-01-01\nu,b,2014-01-02T10:00\nu,c,2014-01-03\nu,d,2014-01-04\n";
  const Interactions data = at("temporal:2014-01-02T23:00:00-01:00", dates);
  EXPECT_THAT(names(data, 0), ElementsAre("a", "b", "c"));
  EXPECT_EQ(data.later, 1);
  EXPECT_THAT(refusal_of([&] { at("temporal:2014-01-01", dates); }),
              HasSubstr("no interaction lies before the time of --split temporal:1388534400; give a larger share, or a "
                        "later time"));
  EXPECT_THAT(refusal_of([&] { at("temporal:2015-01-01", dates); }),
              HasSubstr("and one from it on; give another share or time"));
}

TEST_F(TemporalSplit, UsersWithoutATestAreForTraining) {
  const LeaveOneOut split(read(ten, 0.6));
  EXPECT_EQ(split.users(), 1);
  EXPECT_EQ(split.training_users(), 2);
  EXPECT_EQ(split.target(0, HeldOut::test), 3);
  EXPECT_EQ(split.target(0, HeldOut::validation), 2);
  EXPECT_THAT(split.training(0), ElementsAre(1));
  EXPECT_THAT(split.training(1), ElementsAre(1, 2, 3));
  EXPECT_THAT(split.training_inputs(1).items, ElementsAre(1, 2));
  EXPECT_THAT(split.training_counts(), ElementsAre(0, 2, 1, 1));
  EXPECT_THROW(split.target(1, HeldOut::test), InternalError);
  EXPECT_NE(split.checksum(), LeaveOneOut(read(ten, 0.7)).checksum());
}

TEST_F(TemporalSplit, OfSeveralAtTheSameTimeTheFirstInTheFileIsTheTest) {
  const Interactions data = read("u,a,1\nu,b,2\nu,c,9\nu,d,9\nv,a,1\nv,b,2\n", 0.7);
  EXPECT_EQ(data.split_time, 9);
  EXPECT_THAT(names(data, 0), ElementsAre("a", "b", "c"));
}

TEST_F(TemporalSplit, RareItemsAreDroppedFirst) {
  // c and d have one interaction each: without them u has no test.
  const std::string lines = "u,a,1\nu,b,2\nu,c,9\nv,a,3\nv,b,4\nv,a,8\nv,d,9\n";
  EXPECT_EQ(read(lines, 0.8).untested, 0);
  const Interactions data = read(lines, 0.8, 2);
  EXPECT_THAT(data.users, ElementsAre("v", "u"));
  EXPECT_EQ(data.untested, 1);
}

TEST_F(TemporalSplit, RefusesWhatCannotBeSplit) {
  EXPECT_THAT(refusal_of([&] { read("u,a,1\nu,b,1\nu,c,1\n", 0.5); }),
              HasSubstr("no interaction lies before the time"));
  EXPECT_THAT(refusal_of([&] { read("u,a,1\nv,b,2\nw,c,3\n", 0.5); }),
              HasSubstr("no user has two interactions before"));
  EXPECT_THAT(refusal_of([&] { read("u,a,1\nu,b,2\nv,c,9\n", 0.7); }),
              HasSubstr("no user has two interactions before"));
  const auto path = write_file(folder_.path() / "s.txt", "1 1 2 3 4\n2 2 3 4 1\n");
  EXPECT_THAT(refusal_of([&] { read_interactions(path, {.split = {0.5}}); }), HasSubstr("has no times"));
}

}  // namespace temporal_cut_test
}  // namespace gainlens::data
