#include "data/time_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::data {
namespace time_text_test {

using ::testing::HasSubstr;

// The numbers are those of date --utc --date=TEXT +%s.%N.
TEST(SecondsOfDate, AreThoseOfUtc) {
  EXPECT_EQ(seconds_of_date("1970-01-01"), 0);
  EXPECT_EQ(seconds_of_date("2024-02-29"), 1709164800);
  EXPECT_EQ(seconds_of_date("1969-12-31T23:59:59Z"), -1);
  EXPECT_EQ(seconds_of_date("2024-01-31 23:59"), 1706745540);
  EXPECT_EQ(seconds_of_date("2024-01-31T23:59:59"), 1706745599);
  EXPECT_EQ(seconds_of_date("2024-01-31T23:59:59.25Z"), 1706745599.25);
  EXPECT_EQ(seconds_of_date("2024-01-31T23:59:59.250000000Z"), 1706745599.25);
  EXPECT_EQ(seconds_of_date("2024-01-31T23:59:59+01:30"), 1706740199);
  EXPECT_EQ(seconds_of_date("2024-01-31T23:59:59-0130"), 1706750999);
  EXPECT_EQ(seconds_of_date("0001-01-01"), -62135596800);
}

TEST(DateOfSeconds, IsReadAsTheSameSeconds) {
  for (const char* date : {"1970-01-01T00:00:00Z", "2024-02-29T23:59:59Z", "1969-12-31T23:59:59.25Z",
                           "2024-01-31T00:00:00.000001Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"})
    EXPECT_EQ(date_of_seconds(*seconds_of_date(date)), date);
  EXPECT_EQ(date_of_seconds(1e13), "10000000000000");  // nanoseconds, or no time at all
}

TEST(SecondsOfDate, WhatDoesNotExistIsNone) {
  for (const char* text : {"",
                           "2024",
                           "2024-02-30",
                           "2024-01-31T23:59:59.0000001",  // seconds keep microseconds
                           "2023-02-29",
                           "2024-13-01",
                           "2024-00-01",
                           "2024-1-31",
                           "24-01-31",
                           "31.01.2024",
                           "01/31/2024",
                           "2024-01-31T",
                           "2024-01-31T24:00",
                           "2024-01-31T23:60",
                           "2024-01-31T23:59:60",
                           "2024-01-31T23:59:",
                           "2024-01-31T23:59:5",
                           "2024-01-31T23:59:59.",
                           "2024-01-31T23:59:59.2x",
                           "2024-01-31T23",
                           "2024-01-31Z",
                           "2024-01-31T23:59+",
                           "2024-01-31T23:59+1",
                           "2024-01-31T23:59+24:00",
                           "2024-01-31T23:59Z ",
                           " 2024-01-31",
                           "2024-01-31x23:59",
                           "-024-01-31",
                           "2024-01-31T23:59:59e1"})
    EXPECT_EQ(seconds_of_date(text), std::nullopt) << text;
}

TEST(TimeColumn, IsAllNumbersOrAllDates) {
  double time = 0;
  TimeColumn numbers;
  EXPECT_EQ(numbers.read("1.5e9", 2, time), "");
  EXPECT_EQ(time, 1.5e9);
  EXPECT_FALSE(numbers.dates());
  EXPECT_EQ(numbers.read("2024-01-31", 3, time), "has the date '2024-01-31', and line 2 has a number");
  EXPECT_THAT(numbers.read("9007199254740992", 4, time), HasSubstr("which is not below 2^53"));
  for (const char* text : {"", "soon", "nan", "inf", "1x", " 1"})
    EXPECT_THAT(numbers.read(text, 4, time), HasSubstr("which is neither a finite number nor a date such as")) << text;
  TimeColumn dates;
  EXPECT_EQ(dates.read("2024-02-29", 7, time), "");
  EXPECT_EQ(time, 1709164800);
  EXPECT_TRUE(dates.dates());
  EXPECT_EQ(dates.read("5", 8, time), "has the time 5, and line 7 has a date");
}

}  // namespace time_text_test
}  // namespace gainlens::data
