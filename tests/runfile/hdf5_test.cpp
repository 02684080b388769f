#include "runfile/hdf5.h"

#include "support/file_size_limit.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <optional>

namespace gainlens::runfile::hdf5 {
namespace hdf5_test {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;

TEST(Hdf5, TextIsReadUpToItsLimit) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "text.h5";
  write_file(path, [](const Handle& file) { write_strings(file.get(), "text", {"abc", "", "defg"}, {3}); });
  const Handle file = open_file(path);
  EXPECT_EQ(read_strings(file.get(), "text", {3}, 10), (std::vector<std::string>{"abc", "", "defg"}));
  // "abc" and "defg" with a zero after each: 9 bytes.
  EXPECT_THAT(
      [&] { read_strings(file.get(), "text", {3}, 8); },
      ThrowsMessage<Error>(HasSubstr("dataset 'text' claims more text than 8 bytes, which is the most that is read")));
  EXPECT_THAT([&] { read_strings(file.get(), "text", {2}, 10); },
              ThrowsMessage<Error>(HasSubstr("has shape [3]; expected [2]")));
  EXPECT_THAT([&] { read_strings(file.get(), "texts", {3}, 10); },
              ThrowsMessage<Error>(HasSubstr("dataset 'texts' is missing")));
}

/// Limits the memory that this process may take while it exists.
class DataLimit {
 public:
  explicit DataLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_DATA, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_DATA, &now);
  }
  ~DataLimit() { ::setrlimit(RLIMIT_DATA, &before_); }

 private:
  rlimit before_{};
};

TEST(Hdf5, NumbersThatCannotComeFromWhatIsStoredAreRefused) {
  const TemporaryFolder folder;
  constexpr std::int64_t stored = 1 << 18, gibibyte = 1 << 27;  // numbers
  const std::vector<double> values(stored, 0.5);
  write_file(folder.path() / "n.h5", [&](const Handle& file) {
    create_dataset(file.get(), "none", {H5T_IEEE_F64LE, {2 * gibibyte}, {1 << 20}});
    write(create_dataset(file.get(), "some", {H5T_IEEE_F64LE, {stored}, {}}), H5T_NATIVE_DOUBLE, values.data());
  });
  const Handle file = open_file(folder.path() / "n.h5");
  const Handle none = open_any(file.get(), "none"), some = open_any(file.get(), "some");
  EXPECT_NO_THROW(check_content(none, {gibibyte}, "none"));  // a run that has just begun
  EXPECT_THAT([&] { check_content(none, {gibibyte + 1}, "none"); },
              ThrowsMessage<Error>(HasSubstr("dataset 'none' claims 134217729 numbers in 0 bytes")));
  // 2 MiB are stored. Deflate makes at most 1,032 bytes of one, and numbers of 4 bytes become 8.
  EXPECT_THAT([&] { check_content(some, {5 * gibibyte}, "some"); },
              ThrowsMessage<Error>(HasSubstr("dataset 'some' claims 671088640 numbers in 2097152 bytes")));
  const DataLimit limit(rlim_t{1} << 30);
  EXPECT_NO_THROW(check_content(some, {gibibyte}, "some"));
  EXPECT_THAT([&] { check_content(some, {2 * gibibyte}, "some"); },
              ThrowsMessage<Error>(MatchesRegex("dataset 'some' needs 2.0 GiB of memory, and .* are available")));
}

TEST(Hdf5, TextAttributesComeBack) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "text.h5";
  write_file(path, [](const Handle& file) {
    write_attribute(file.get(), "some", "a \xce\xbb");
    write_attribute(file.get(), "none", "");
  });
  const Handle file = open_file(path);
  EXPECT_EQ(read_text_attribute(file.get(), "some"), "a \xce\xbb");
  EXPECT_EQ(read_text_attribute(file.get(), "none"), "");
  EXPECT_EQ(read_text_attribute(file.get(), "absent"), std::nullopt);
}

TEST(Hdf5, ChunksAreCopiedAsTheyAreStored) {
  const TemporaryFolder folder;
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  const auto source = folder.path() / "from.h5", copied = folder.path() / "to.h5", other = folder.path() / "other.h5";
  write_file(source, [&](const Handle& file) {  // the last chunk of a row is half full
    write(create_dataset(file.get(), "d", {H5T_IEEE_F32LE, {2, 3}, {1, 2}}), H5T_NATIVE_DOUBLE, values.data());
  });
  const Handle from_file = open_file(source), from = open_any(from_file.get(), "d");
  const auto copy = [&](const std::filesystem::path& path, bool changed) {
    write_file(path, [&](const Handle& file) {
      const Handle to = create_dataset(file.get(), "d", {H5T_IEEE_F32LE, {2, 2, 3}, {1, 1, 2}});
      copy_chunks(from, to, 1);
      const double other_value = 7;
      if (changed) write_box(to, {1, 0, 0}, {1, 1, 1}, H5T_NATIVE_DOUBLE, &other_value);
    });
  };
  copy(copied, false);
  copy(other, true);
  const Handle to_file = open_file(copied), to = open_any(to_file.get(), "d");
  EXPECT_TRUE(has_copied_chunks(from, to, 1));
  EXPECT_EQ(chunk_count(to), 4u);
  std::vector<double> found(12);
  read(to, H5T_NATIVE_DOUBLE, found.data());
  EXPECT_THAT(std::vector<double>(found.begin() + 6, found.end()), ::testing::ElementsAreArray(values));
  for (std::size_t i = 0; i < 6; ++i) EXPECT_THAT(found[i], ::testing::IsNan());
  const Handle other_file = open_file(other);
  EXPECT_FALSE(has_copied_chunks(from, open_any(other_file.get(), "d"), 1));
}

TEST(Hdf5, AFailureThatPassesEndsTheWrite) {
  const TemporaryFolder folder;
  const std::vector<double> values(1000, 1.0);
  const auto lose_a_buffer = [&](const Handle& file) {
    auto dataset = std::make_optional(create_dataset(file.get(), "lost", {H5T_IEEE_F64LE, {1000}, {}}));
    write_box(*dataset, {0}, {10}, H5T_NATIVE_DOUBLE,
              values.data());  // stays in the library's buffer until the dataset is closed
    {
      const testing::FileSizeLimit full(1);
      dataset.reset();
    }
    const Handle later = create_dataset(file.get(), "later", {H5T_IEEE_F64LE, {1000}, {}});  // the limit is gone
    write(later, H5T_NATIVE_DOUBLE, values.data());
  };
  EXPECT_THAT([&] { write_file(folder.path() / "f.h5", lose_a_buffer); },
              ThrowsMessage<Error>(HasSubstr("File too large")));
}

TEST(Hdf5, ForgottenHandlesAreLoud) {
  const TemporaryFolder folder;
  Handle forgotten;
  EXPECT_THAT(
      [&] {
        write_file(folder.path() / "f.h5", [&](const Handle& file) { forgotten = create_group(file.get(), "group"); });
      },
      ThrowsMessage<Error>(HasSubstr("objects of the file are still open")));
}

}  // namespace hdf5_test
}  // namespace gainlens::runfile::hdf5
