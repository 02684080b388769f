#include "data/item_names.h"

#include "core/error.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::data {
namespace item_names_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::refusal_of;
using testing::TemporaryFolder;
using testing::write_file;

TEST(OrderOfNames, NumbersAsNumbersAndOthersByTheirBytes) {
  EXPECT_THAT(order_of_names(std::vector<std::string>{"10", "9", "2"}), ElementsAre(2, 1, 0));
  EXPECT_THAT(order_of_names(std::vector<std::string>{"b", "10", "9"}), ElementsAre(1, 2, 0));
  EXPECT_THAT(order_of_names(std::vector<std::string>{"10", "09"}), ElementsAre(1, 0));
  EXPECT_THAT(order_of_names({}), ElementsAre());
}

TEST(ReadItemIds, GivesTheNamesByTheirIds) {
  const TemporaryFolder folder;
  const auto path = write_file(folder.path() / "i.csv", "id,x,item\n2,a,\"b,\"\"c\"\n0,,[PAD]\n1,,B00\n");
  EXPECT_THAT(read_item_ids(path), ElementsAre("B00", "b,\"c"));
  EXPECT_THAT(read_item_ids(write_file(folder.path() / "i.tsv", "item\tid\n7\t1\n")), ElementsAre("7"));
}

TEST(ReadItemIds, RefusesWhatIsNoNumberingOfItems) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& content) {
    const auto path = write_file(folder.path() / "i.csv", content);
    return refusal_of([&] { read_item_ids(path); });
  };
  EXPECT_THAT(refusal(""), HasSubstr("i.csv"));
  EXPECT_THAT(refusal("item,ids\na,1\n"), HasSubstr("has no column 'id'; the columns item and id are needed"));
  EXPECT_THAT(refusal("item,ids\na,1\n"), HasSubstr("did you mean 'ids'"));
  EXPECT_THAT(refusal("item,id,id\na,1,1\n"), HasSubstr("has the column 'id' twice"));
  EXPECT_THAT(refusal("item,id\n"), HasSubstr("names no items"));
  EXPECT_THAT(refusal("item,id\n[PAD],0\n"), HasSubstr("names no items"));
  EXPECT_THAT(refusal("item,id\na,1,2\n"), HasSubstr("line 2 has 3 of 2 columns"));
  EXPECT_THAT(refusal("item,id\na,x\n"), HasSubstr("line 2 has the id 'x'; must be a whole number"));
  EXPECT_THAT(refusal("item,id\na,-1\n"), HasSubstr("line 2 has the id '-1'"));
  EXPECT_THAT(refusal("item,id\na,1\nb,1\n"), HasSubstr("line 3: id 1 stands twice"));
  EXPECT_THAT(refusal("item,id\na,1\na,2\n"), HasSubstr("lines 2 and 3: item 'a' stands twice"));
  EXPECT_THAT(refusal("item,id\na,1\nb,3\n"), HasSubstr("no item has the id 2"));
  EXPECT_THAT(refusal("item,id\n\"a,1\n"), HasSubstr("line 2"));
}

}  // namespace item_names_test
}  // namespace gainlens::data
