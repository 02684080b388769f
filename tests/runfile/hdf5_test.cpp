#include "runfile/hdf5.h"

#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::runfile::hdf5 {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;

TEST(Hdf5, TextIsReadUpToItsLimit) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "text.h5";
  {
    const Handle file = create_file(path);
    write_strings(file.get(), "text", {"abc", "", "defg"}, {3});
  }
  const Handle file = open_file(path);
  EXPECT_EQ(read_strings(file.get(), "text", {3}, 10), (std::vector<std::string>{"abc", "", "defg"}));
  // "abc" and "defg" with a zero after each: 9 bytes.
  EXPECT_THAT([&] { read_strings(file.get(), "text", {3}, 8); },
              ThrowsMessage<Error>(HasSubstr("dataset 'text' claims more text than the 8 bytes that are read at most")));
  EXPECT_THAT([&] { read_strings(file.get(), "text", {2}, 10); }, ThrowsMessage<Error>(HasSubstr("has shape [3]; expected [2]")));
  EXPECT_THAT([&] { read_strings(file.get(), "texts", {3}, 10); }, ThrowsMessage<Error>(HasSubstr("dataset 'texts' is missing")));
}

TEST(Hdf5, ChunksAreCopiedAsTheyAreStored) {
  const TemporaryFolder folder;
  const Handle file = create_file(folder.path() / "chunks.h5");
  const Handle from = create_dataset(file.get(), "from", {H5T_IEEE_F32LE, {2, 3}, {1, 2}});  // the last chunk of a row is half used
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  write(from, H5T_NATIVE_DOUBLE, values.data());
  const Handle to = create_dataset(file.get(), "to", {H5T_IEEE_F32LE, {2, 2, 3}, {1, 1, 2}});
  copy_chunks(from, to, 1);
  std::vector<double> copied(12);
  read(to, H5T_NATIVE_DOUBLE, copied.data());
  EXPECT_THAT(std::vector<double>(copied.begin() + 6, copied.end()), ::testing::ElementsAreArray(values));
  for (std::size_t i = 0; i < 6; ++i) EXPECT_THAT(copied[i], ::testing::IsNan());
}

}  // namespace
}  // namespace gainlens::runfile::hdf5
