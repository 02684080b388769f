// Every Parquet file that cannot be used gets one line that says why. The files were written by
// golden/make_parquet_golden.py.
#include "data/parquet_interactions.h"
#include "support/parquet.h"
#include "support/refusal.h"
#include "support/text_file.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::data {
namespace broken_parquet_test {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::parquet_file;
using testing::refusal_of;
using ::testing::StartsWith;
using testing::write_file;

class BrokenParquet : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!parquet_module()) GTEST_SKIP() << "this build has no Arrow";
  }
  /// The message without the path in front.
  static std::string refusal(const std::filesystem::path& path, const ColumnOptions& columns = {}) {
    return without_path(refusal_of([&] { read_interactions(path, {.min_user_interactions = 1, .columns = columns}); }),
                        path);
  }
  static std::string without_path(const std::string& message, const std::filesystem::path& path) {
    const std::string start = path.string() + ": ";
    EXPECT_THAT(message, StartsWith(start));
    EXPECT_EQ(std::count_if(message.begin(), message.end(), [](unsigned char c) { return c < 0x20; }), 0) << message;
    return message.substr(std::min(start.size(), message.size()));
  }
  static std::string of_kinds(const ColumnOptions& columns) { return refusal(parquet_file("kinds.parquet"), columns); }

  testing::TemporaryFolder folder_;
};

TEST_F(BrokenParquet, MomentsThatSecondsCannotTellApart) {
  EXPECT_THAT(refusal(parquet_file("nanoseconds.parquet")),
              StartsWith("row 2 has a time that is no whole number of microseconds"));
}

TEST_F(BrokenParquet, ColumnsOfOtherTypes) {
  EXPECT_EQ(of_kinds({.item = "list", .time = "none"}),
            "the column 'list' is of type nested: List, which cannot hold items (--item-column); they are texts or "
            "whole numbers");
  EXPECT_THAT(of_kinds({.item = "struct", .time = "none"}), StartsWith("the column 'struct' is of type nested, which"));
  for (const char* column : {"map", "truth", "money", "clock", "nothing", "date", "nanos"})
    EXPECT_THAT(of_kinds({.user = column, .item = "text", .time = "none"}), HasSubstr("which cannot hold users"))
        << column;
  for (const char* column : {"map", "truth", "money", "clock", "nothing", "list"})
    EXPECT_THAT(of_kinds({.item = "text", .time = column}), HasSubstr("which cannot hold times (--time-column)"))
        << column;
}

TEST_F(BrokenParquet, ValuesThatCannotBeUsed) {
  EXPECT_EQ(of_kinds({.item = "fraction", .time = "none"}),
            "row 2 has the item 2.5, which is not a whole number below 2^53 (1 other row is malformed); each row has a "
            "user, an item");
  EXPECT_THAT(of_kinds({.item = "beyond", .time = "none"}), StartsWith("row 1 has the item 9007199254740992, which"));
  EXPECT_THAT(of_kinds({.item = "nan", .time = "none"}), StartsWith("row 1 has the item nan, which is not a whole"));
  EXPECT_EQ(of_kinds({.item = "gap", .time = "none"}),
            "row 3 has no item (null) (1 other row is malformed); each row has a user, an item");
  EXPECT_THAT(of_kinds({.user = "gap", .item = "text", .time = "none"}), StartsWith("row 3 has no user (null)"));
  EXPECT_EQ(of_kinds({.item = "text", .time = "time gap"}),
            "row 2 has no time (null); each row has a user, an item and a time");
  EXPECT_THAT(of_kinds({.item = "escape\x1b[2J", .time = "none"}), StartsWith("row 1 has a control character in its"));
  EXPECT_THAT(of_kinds({.item = "text", .time = "uint64"}), HasSubstr("which is not below 2^53"));
  EXPECT_THAT(of_kinds({.item = "text", .time = "nan"}), HasSubstr("has the time nan"));
  EXPECT_THAT(of_kinds({.item = "text", .time = "mixed"}),
              StartsWith("row 3 has the date '2024-01-31', and row 1 has a number;"));
  EXPECT_THAT(of_kinds({.item = "text", .time = "soon"}),
              StartsWith("row 3 has the time 'soon\\x1b[2J', which is nei"));
  EXPECT_THAT(refusal(parquet_file("int96.parquet"), {.user = "time", .item = "item", .time = "none"}),
              HasSubstr("the column 'time' is of type INT96, which cannot hold users"));
}

TEST_F(BrokenParquet, ColumnsThatAreNotThere) {
  EXPECT_THAT(of_kinds({.user = "users", .item = "text"}),
              AllOf(StartsWith("has no column 'users' (--user-column); its columns are user, text, large, binary, "),
                    EndsWith("did you mean 'user'?")));
  EXPECT_THAT(of_kinds({}), StartsWith("no column has a known name for items"));
  EXPECT_THAT(
      refusal(parquet_file("ratings.parquet")),
      HasSubstr("give --time-column none if the order of the rows is the order in time; its columns are stars"));
}

TEST_F(BrokenParquet, OptionsForTablesOfText) {
  const auto path = parquet_file("ratings.parquet");
  EXPECT_THAT(refusal(path, {.delimiter = ','}), StartsWith("--delimiter is for tables of text"));
  EXPECT_THAT(refusal(path, {.header = false}), StartsWith("--no-header is for tables of text"));
}

TEST_F(BrokenParquet, FilesThatAreNone) {
  EXPECT_EQ(refusal(parquet_file("empty.parquet")), "no interactions, the table has no rows; give a data set");
  EXPECT_THAT(refusal(parquet_file("encrypted.parquet")), HasSubstr("ncrypted"));
  EXPECT_EQ(refusal(write_file(folder_.path() / "data", "PARE and more PARE")),
            "an encrypted Parquet file; decrypt it first");
  EXPECT_THAT(refusal(write_file(folder_.path() / "data", "PAR1\x15\x04PAR1")),
              StartsWith("not a Parquet file that can be read: "));
  EXPECT_THAT(refusal(write_file(folder_.path() / "data.parquet", "user,item\n1,2\n")),
              StartsWith("does not begin as a Parquet file does, with PAR1"));
  EXPECT_EQ(refusal(write_file(folder_.path() / "none.parquet", "")), "empty; give a data set");
  const std::string whole = testing::bytes_of(parquet_file("ratings.parquet"));
  EXPECT_EQ(refusal(write_file(folder_.path() / "data.gz", testing::gzipped(whole))),
            "a Parquet file within gzip; unpack it with gunzip");
}

/// The bytes with another text in the place of one that they hold once.
std::string replaced(std::string bytes, const std::string& old, const std::string& other) {
  const std::size_t place = bytes.find(old);
  EXPECT_NE(place, std::string::npos);
  EXPECT_EQ(bytes.find(old, place + 1), std::string::npos);
  return bytes.replace(place, old.size(), other);
}

TEST_F(BrokenParquet, FewBytesThatClaimMuchMemory) {
  // The first page of the file: a dictionary of 15 bytes, in 24 compressed ones. Then of 2 GiB.
  const std::string whole = testing::bytes_of(parquet_file("small.parquet"));
  const std::string other =
      replaced(whole, "PAR1\x15\x04\x15\x1e\x15\x30", "PAR1\x15\x04\x15\x1e\x15\xfe\xff\xff\xff\x0f");
  EXPECT_THAT(refusal(write_file(folder_.path() / "data", other)),
              StartsWith("not a Parquet file that can be read: it asks for more than 256 MiB of memory, which its size "
                         "does not explain or the machine does not have; "));
}

TEST_F(BrokenParquet, FewBytesThatClaimManyRows) {
  // The number of rows in the footer, 18, stands before the list of row groups. The length of the footer ends the file.
  const std::string whole = testing::bytes_of(parquet_file("small.parquet"));
  std::string other = replaced(whole, "\x16\x24\x19", "\x16\x80\x80\x80\x80\x80\x80\x10\x19");
  other[other.size() - 8] = static_cast<char>(other[other.size() - 8] + 6);
  EXPECT_THAT(refusal(write_file(folder_.path() / "data", other)),
              StartsWith("not a Parquet file that can be read: it claims 35184372088832 rows, and a file of its size "
                         "may have 16777216; "));
  // Row groups may not have more rows than the file, so that the limit holds for what is read.
  other = replaced(whole, "\x16\x24\x19", "\x16\x02\x19");
  EXPECT_THAT(refusal(write_file(folder_.path() / "data", other)),
              HasSubstr("its row groups have another number of rows than the file; "));
}

TEST_F(BrokenParquet, WhatArrowSaysIsOneLineInPlainWords) {
  const std::string whole = testing::bytes_of(parquet_file("small.parquet"));
  const std::string other = replaced(whole, "PAR1\x15\x04\x15\x1e", "PAR1\x15\x04\x1f\x1e");
  const std::string message = refusal(write_file(folder_.path() / "data", other));
  EXPECT_THAT(message, StartsWith("not a Parquet file that can be read: its metadata: "));
  EXPECT_THAT(message, Not(HasSubstr("\\x0a")));
  EXPECT_THAT(message, Not(HasSubstr("xception")));
}

/// A file in memory, read again and again: a file system may wait for the disk at each.
class Damaged {
 public:
  enum class Outcome { right, refused, misread };

  Damaged() : wanted_(read(parquet_file("small.parquet"))) {}
  ~Damaged() { ::close(file_); }
  Damaged(const Damaged&) = delete;
  Damaged& operator=(const Damaged&) = delete;

  Outcome read_bytes(const std::string& bytes) const {
    EXPECT_EQ(::ftruncate(file_, 0), 0);
    EXPECT_EQ(::pwrite(file_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    try {
      const Interactions found = read(fmt::format("/proc/self/fd/{}", file_));
      const bool same = found.users == wanted_.users && found.items == wanted_.items && found.item == wanted_.item &&
                        found.time == wanted_.time;
      return same ? Outcome::right : Outcome::misread;
    } catch (const InvalidArgument& error) {
      const std::string message = error.what();
      EXPECT_EQ(std::count_if(message.begin(), message.end(), [](unsigned char c) { return c < 0x20; }), 0) << message;
      return Outcome::refused;
    }
  }

 private:
  static Interactions read(const std::filesystem::path& path) {
    return read_interactions(path, {.min_user_interactions = 1});
  }
  int file_ = ::memfd_create("damaged", MFD_CLOEXEC);
  Interactions wanted_;
};

TEST_F(BrokenParquet, EveryTruncationIsRefused) {
  const std::string whole = testing::bytes_of(parquet_file("small.parquet"));
  const Damaged damaged;
  ASSERT_EQ(damaged.read_bytes(whole), Damaged::Outcome::right);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(damaged.read_bytes(whole.substr(0, size)), Damaged::Outcome::refused) << size;
}

TEST_F(BrokenParquet, ADamagedByteIsRefusedOrChangesNothing) {
  const std::string whole = testing::bytes_of(parquet_file("small.parquet"));
  ASSERT_EQ(whole.size(), 1170u);
  const Damaged damaged;
  std::size_t refused = 0;
  std::vector<std::size_t> misread;
  for (std::size_t place = 0; place < whole.size(); ++place) {
    for (const int change : {1 << place % 8, 0xFF}) {
      std::string other = whole;
      other[place] = static_cast<char>(other[place] ^ change);
      const auto outcome = damaged.read_bytes(other);
      refused += outcome == Damaged::Outcome::refused ? 1 : 0;
      if (outcome == Damaged::Outcome::misread) misread.push_back(place);
    }
  }
  EXPECT_GT(refused, whole.size());
  // Pages have checksums. The footer has none: a name may become another one, or microseconds nanoseconds.
  const std::size_t footer = whole.size() - 8 - static_cast<unsigned char>(whole[whole.size() - 8]) -
                             256 * static_cast<std::size_t>(static_cast<unsigned char>(whole[whole.size() - 7]));
  fmt::print("{} of {} refused; misread after damage at {}, footer from {}\n", refused, 2 * whole.size(), misread,
             footer);
  for (const std::size_t place : misread) EXPECT_GE(place, footer);
  EXPECT_LT(misread.size(), 10u);
}

/// Also in a build with Arrow.
TEST(WithoutParquet, TheMessageSaysWhatToInstallAndHowToConvert) {
  const auto path = parquet_file("ratings.parquet");
  const auto refusal = [&](const std::optional<std::filesystem::path>& module) {
    return refusal_of([&] { read_parquet_interactions(path, {.time = "when"}, module); });
  };
  EXPECT_THAT(
      refusal(std::nullopt),
      AllOf(StartsWith(path.string() + ": a Parquet file, and this gainlens was built without Arrow"),
            HasSubstr("install pyarrow with scripts/build, or convert the file to CSV, for example with Python: ")));
  EXPECT_THAT(refusal("/no/such/module.so"),
              HasSubstr("the module that reads them cannot be loaded (/no/such/module.so"));
  EXPECT_THAT(refusal("/proc/self/exe"), HasSubstr("cannot be loaded"));
}

}  // namespace broken_parquet_test
}  // namespace gainlens::data
