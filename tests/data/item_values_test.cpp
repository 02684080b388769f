#include "data/item_values.h"

#include "support/refusal.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::data {
namespace item_values_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::refusal_of;

ItemValues read(const std::string& text) {
  const testing::TemporaryFolder folder;
  const Interactions interactions = read_interactions(testing::write_file(folder.path() / "data", "a 10 20 30\n"));
  return read_item_values(testing::write_file(folder.path() / "values.csv", text), interactions);
}

TEST(ItemValues, StandInTheOrderOfTheCatalogue) {
  const ItemValues found = read("item,noise,place\n30,1.5,7\n10,-2e1,x\n40,3,\n20,0,1");
  EXPECT_EQ(found.name, "noise");
  EXPECT_THAT(found.values, ElementsAre(-20, 0, 1.5));
  EXPECT_EQ(found.lines_without_item, 1u);
  const ItemValues from_a_sheet = read("\xEF\xBB\xBFitem,noise\r\n10,1\r\n20,2\r\n30,3\r\n");
  EXPECT_THAT(from_a_sheet.values, ElementsAre(1, 2, 3));
  EXPECT_EQ(from_a_sheet.lines_without_item, 0u);
  const ItemValues quoted = read("item,\"noise, mean\",note\n\"10\",\"1\",\"a\nb\"\n20,2,\n30,3,\n\n");
  EXPECT_EQ(quoted.name, "noise, mean");
  EXPECT_THAT(quoted.values, ElementsAre(1, 2, 3));
}

TEST(ItemValues, WhatIsMissingOrBrokenIsNamed) {
  EXPECT_THAT(refusal_of([] { read("noise,item\n10,1\n"); }), HasSubstr("the first line must be item,NAME"));
  EXPECT_THAT(refusal_of([] { read("item\n10\n"); }), HasSubstr("the first line must be item,NAME"));
  EXPECT_THAT(refusal_of([] { read("item,noise\n10,1\n20,2\n"); }), HasSubstr("has no line for item '30'"));
  EXPECT_THAT(refusal_of([] { read("item,noise\n10,1\n10,2\n"); }), HasSubstr("line 3: item '10' stands twice"));
  EXPECT_THAT(refusal_of([] { read("\n"); }), HasSubstr("the first line must be item,NAME"));
  EXPECT_THAT(refusal_of([] { read("item,noise\n10,1\n20,2,3\n30,3\n"); }), HasSubstr("line 3 has 3 of 2 columns"));
  EXPECT_THAT(refusal_of([] { read("item,noise\n10,1\n\"20,2\n"); }), HasSubstr("line 3 opens a quote that is never"));
  for (const char* line : {"10", ""})
    EXPECT_THAT(refusal_of([&] { read(std::string("item,noise\n") + line + "\n20,1\n"); }),
                HasSubstr("line 2 has 1 of 2 columns; it must be an item, a comma and a number"));
  for (const char* line : {"10,", "10,x", "10,1x", "10,nan", "10,inf", "10,1.1e100", "10,-1e308", ",1"})
    EXPECT_THAT(refusal_of([&] { read(std::string("item,noise\n") + line + "\n20,1\n"); }),
                HasSubstr("line 2 must be an item, a comma and a number of at most 1e+100 in size"))
        << line;
}

TEST(ItemValues, OfAPipeAreRefused) {
  EXPECT_THAT(refusal_of([] { read_item_values(testing::pipe_with("item,noise\n"), {}); }),
              HasSubstr("not a regular file; pipes and devices are not read here"));
}

}  // namespace item_values_test
}  // namespace gainlens::data
