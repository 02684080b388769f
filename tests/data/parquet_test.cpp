// Parquet files give the interactions of the CSV file of the same table. Both were written by
// golden/make_parquet_golden.py.
#include "support/parquet.h"
#include "data/parquet_interactions.h"

#include "data/leave_one_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gainlens::data {
namespace parquet_test {

using ::testing::ElementsAre;
using testing::parquet_file;

/// Needs the module, which a build without Arrow lacks.
class Parquet : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!parquet_module()) GTEST_SKIP() << "this build has no Arrow";
  }
  static Interactions read(const std::string& name, const ColumnOptions& columns) {
    return read_interactions(parquet_file(name), {.min_user_interactions = 1, .columns = columns});
  }
  /// The interactions of NAME.parquet and NAME.csv.
  static void expect_equal(const std::string& name, const ColumnOptions& columns) {
    const Interactions found = read(name + ".parquet", columns), wanted = read(name + ".csv", columns);
    EXPECT_EQ(found.users, wanted.users);
    EXPECT_EQ(found.items, wanted.items);
    EXPECT_EQ(found.begin, wanted.begin);
    EXPECT_EQ(found.item, wanted.item);
    EXPECT_EQ(found.time, wanted.time);  // every bit
    EXPECT_EQ(found.columns->dates, wanted.columns->dates);
    EXPECT_FALSE(found.columns->delimiter);
  }
};

TEST_F(Parquet, ADataSetIsThatOfItsCsv) {
  const ColumnOptions columns = {.time = "when"};
  expect_equal("ratings", columns);
  expect_equal("small", {});
  const auto split_of = [&](const char* name) {
    return LeaveOneOut(read_interactions(parquet_file(name), {.columns = columns})).checksum();
  };
  EXPECT_EQ(split_of("ratings.parquet"), split_of("ratings.csv"));
  const Interactions data = read("ratings.parquet", columns);
  EXPECT_EQ(format_name(data.format), "parquet");
  EXPECT_EQ(data.columns->user, "user_id");
  EXPECT_EQ(data.columns->item, "item_id");
  EXPECT_EQ(data.columns->time, "when");
  EXPECT_EQ(data.interaction_count(), 78);
  EXPECT_THAT(data.items, ElementsAre("", "100", "20", "3", "7", "8000000000"));
}

TEST_F(Parquet, NamesOfEveryType) {
  for (const char* item : {"text", "large", "binary", "dictionary", "int8", "uint32", "int64", "uint64", "whole"}) {
    SCOPED_TRACE(item);
    expect_equal("kinds", {.item = item, .time = "none"});
    expect_equal("kinds", {.user = item, .item = "user", .time = "none"});
  }
  EXPECT_EQ(read("kinds.parquet", {.item = "uint64", .time = "none"}).items[2], "18446744073709551615");
}

TEST_F(Parquet, TimesOfEveryType) {
  for (const char* time : {"date", "seconds", "millis", "micros", "nanos", "iso", "digits", "real", "int8", "int64"}) {
    SCOPED_TRACE(time);
    expect_equal("kinds", {.item = "text", .time = time});
  }
  EXPECT_EQ(read("kinds.parquet", {.item = "text", .time = "nanos"}).time[0], -60 + 59.999);
  const Interactions old = read("int96.parquet", {}), wanted = read("kinds.csv", {.item = "int64", .time = "nanos"});
  EXPECT_EQ(old.time, wanted.time);
  EXPECT_TRUE(old.columns->dates);
}

}  // namespace parquet_test
}  // namespace gainlens::data
