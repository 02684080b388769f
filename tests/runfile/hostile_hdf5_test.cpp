// Files that would make libhdf5 read or write outside its buffers, or fill the memory. All have right checksums.
#include "runfile/hdf5.h"

#include "runfile/stored.h"
#include "support/file_bytes.h"
#include "support/hdf5_checksums.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <functional>
#include <optional>

namespace gainlens::runfile::hdf5 {
namespace hostile_hdf5_test {

using gainlens::testing::bytes_of;
using ::testing::HasSubstr;

template <typename T>
void put(std::string& bytes, std::size_t at, T value) {
  ASSERT_LE(at + sizeof value, bytes.size());
  std::memcpy(&bytes[at], &value, sizeof value);
}

std::size_t place_of(const std::string& bytes, const std::string& what, std::size_t from = 0) {
  const std::size_t at = bytes.find(what, from);
  EXPECT_NE(at, std::string::npos) << "not in the file";
  return std::min(at, bytes.size());
}

std::string raw(std::uint64_t number, std::size_t bytes) {
  return {reinterpret_cast<const char*>(&number), bytes};
}

class HostileHdf5 : public ::testing::Test {
 protected:
  std::filesystem::path path() const { return folder_.path() / "run.h5"; }

  /// A file with a text of 60,000 bytes, numbers in chunks with half of the last one beyond the shape, and a group of
  /// many links.
  void SetUp() override {
    write_file(path(), [](const Handle& file) {
      write_strings(file.get(), "text", {std::string(60'000, 'x'), "", "ab"}, {3});
      write_attribute(file.get(), "format", "some");
      const std::vector<double> values = {1, 2, 3, 4, 5, 6};
      write(create_dataset(file.get(), "rank", {H5T_IEEE_F32LE, {2, 3}, {1, 2}}), H5T_NATIVE_DOUBLE, values.data());
      write(create_dataset(file.get(), "whole", {H5T_IEEE_F64LE, {6}, {6}}), H5T_NATIVE_DOUBLE, values.data());
      const Handle group = create_group(file.get(), "many");
      for (int i = 0; i < 12; ++i) {
        const Handle one = create_dataset(group.get(), "n" + std::to_string(i), {H5T_STD_I64LE, {1}, {}, 7});
      }
    });
    good_ = bytes_of(path());
  }

  /// What reading everything gives: "read", or why it is refused.
  std::string outcome() const {
    try {
      const Handle file = open_file(path());
      read_text_attribute(file.get(), "format");
      read_strings(file.get(), "text", {3}, 1 << 20);
      std::array<double, 6> values{};
      read(open_dataset(file.get(), "rank", {H5T_IEEE_F32LE, {2, 3}, {1, 2}}), H5T_NATIVE_DOUBLE, values.data());
      read(open_dataset(file.get(), "whole", {H5T_IEEE_F64LE, {6}, {6}}), H5T_NATIVE_DOUBLE, values.data());
      for (int i = 0; i < 12; ++i) {
        std::int64_t number = 0;
        read(open_dataset(file.get(), "many/n" + std::to_string(i), {H5T_STD_I64LE, {1}, {}}), H5T_NATIVE_INT64,
             &number);
      }
    } catch (const Error& error) {
      EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
      return error.what();
    }
    return "read";
  }
  std::string outcome_of(std::string bytes) const {
    testing::repair_checksums(bytes);
    testing::write_file(path(), bytes);
    return outcome();
  }
  /// The file after a change with the plain library.
  std::string outcome_after(const std::function<void(hid_t)>& change) const {
    testing::write_file(path(), good_);
    const hid_t file = testing::open_to_change(path());
    change(file);
    EXPECT_GE(H5Fclose(file), 0);
    return outcome();
  }
  static void replace(hid_t file, const char* name, hid_t type, const std::function<void(hid_t)>& set) {
    H5Ldelete(file, name, H5P_DEFAULT);
    const std::array<hsize_t, 2> shape = {2, 3};
    const hid_t space = H5Screate_simple(2, shape.data(), nullptr), creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(creation, false);
    set(creation);
    const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    EXPECT_GE(dataset, 0);
    H5Dclose(dataset);
    H5Pclose(creation);
    H5Sclose(space);
  }

  gainlens::testing::TemporaryFolder folder_;
  std::string good_;
};

TEST_F(HostileHdf5, AGoodFileIsRead) {
  EXPECT_EQ(outcome(), "read");
  const Handle file = open_file(path());
  EXPECT_EQ(read_strings(file.get(), "text", {3}, 1 << 20),
            (std::vector<std::string>{std::string(60'000, 'x'), "", "ab"}));
  std::array<double, 2> box{};
  read_box(open_any(file.get(), "rank"), {0, 1}, {2, 1}, H5T_NATIVE_DOUBLE, box.data());
  EXPECT_EQ(box, (std::array<double, 2>{2, 5}));
}

// The library's buffer follows the length in the reference, and the copy the size of the object in the heap.
TEST_F(HostileHdf5, AReferenceMustSayTheLengthOfItsText) {
  const std::uint64_t collection = place_of(good_, "GCOL");
  const std::size_t reference = place_of(good_, raw(60'000, 4) + raw(collection, 8));
  for (const std::uint32_t length : {8u, 59'999u, 60'001u, 0xffffffffu, 0u}) {
    std::string bytes = good_;
    put(bytes, reference, length);
    EXPECT_THAT(outcome_of(bytes), HasSubstr("a text has 60000 bytes, and the reference to it says")) << length;
  }
  std::string bytes = good_;
  put(bytes, reference + 4, std::uint64_t{good_.size() - 8});
  EXPECT_THAT(outcome_of(bytes), HasSubstr("a collection of texts: 16 bytes at byte"));
  put(bytes, reference + 4, std::uint64_t{16});
  EXPECT_THAT(outcome_of(bytes), HasSubstr("a collection of texts: is not of the form"));
  put(bytes, reference + 4, std::uint64_t{0});
  EXPECT_THAT(outcome_of(bytes), HasSubstr("a text of 60000 bytes lies nowhere in the file"));
  bytes = good_;
  put(bytes, reference + 12, std::uint32_t{77});
  EXPECT_THAT(outcome_of(bytes), HasSubstr("a text is missing in its collection"));
}

TEST_F(HostileHdf5, ATextMustLieInItsCollection) {
  const std::size_t collection = place_of(good_, "GCOL");
  const std::size_t object = place_of(good_, raw(60'000, 8), collection);
  for (const std::uint64_t size : {std::uint64_t{60'001}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    std::string bytes = good_;
    put(bytes, object, size);
    EXPECT_NE(outcome_of(bytes), "read") << size;
  }
  for (const std::uint64_t size : {std::uint64_t{8}, std::uint64_t{good_.size()}, ~std::uint64_t{0}}) {
    std::string bytes = good_;
    put(bytes, collection + 8, size);
    EXPECT_THAT(outcome_of(bytes), HasSubstr("a collection of texts")) << size;
  }
}

TEST_F(HostileHdf5, OtherStorageIsRefused) {
  EXPECT_THAT(outcome_after([](hid_t file) {
                replace(file, "rank", H5T_IEEE_F32LE, [](hid_t creation) { H5Pset_external(creation, "/x", 0, 24); });
              }),
              HasSubstr("a message of kind 7, which gainlens never writes"));
  EXPECT_THAT(outcome_after([](hid_t file) {
                replace(file, "rank", H5T_IEEE_F32LE, [](hid_t creation) {
                  const std::array<hsize_t, 2> shape = {2, 3};
                  const hid_t space = H5Screate_simple(2, shape.data(), nullptr);
                  H5Pset_virtual(creation, space, "/x.h5", "y", space);
                  H5Sclose(space);
                });
              }),
              HasSubstr("neither contiguous nor in compressed chunks"));
  EXPECT_THAT(outcome_after([](hid_t file) {
                replace(file, "rank", H5T_IEEE_F32LE, [](hid_t creation) { H5Pset_layout(creation, H5D_COMPACT); });
              }),
              HasSubstr("neither contiguous nor in compressed chunks"));
  // A fill value of text is a reference that the library follows.
  EXPECT_THAT(outcome_after([](hid_t file) {
                replace(file, "rank", text_type(), [](hid_t creation) {
                  const char* const fill = "fill";
                  H5Pset_fill_value(creation, text_type(), &fill);
                });
              }),
              HasSubstr("a fill value: is not of the form"));
}

TEST_F(HostileHdf5, LinksThatLeadElsewhereAreNotFollowed) {
  EXPECT_THAT(outcome_after([](hid_t file) {
                H5Ldelete(file, "rank", H5P_DEFAULT);
                H5Lcreate_external("/etc/passwd", "x", file, "rank", H5P_DEFAULT, H5P_DEFAULT);
              }),
              HasSubstr("'rank' is missing"));
  EXPECT_THAT(outcome_after([](hid_t file) {
                H5Ldelete(file, "rank", H5P_DEFAULT);
                H5Lcreate_soft("/whole", file, "rank", H5P_DEFAULT, H5P_DEFAULT);
              }),
              HasSubstr("'rank' is missing"));
  EXPECT_EQ(outcome_after([](hid_t file) { H5Lcreate_hard(file, "/", file, "many/root", H5P_DEFAULT, H5P_DEFAULT); }),
            "read");  // a cycle is walked once
}

TEST_F(HostileHdf5, OnlyOurFiltersAreRead) {
  constexpr const char* refusal = "others than shuffle, deflate and fletcher32";
  const std::array<hsize_t, 2> chunk = {1, 2};
  const auto with = [&](const std::function<void(hid_t)>& filters) {
    return outcome_after([&](hid_t file) {
      replace(file, "rank", H5T_IEEE_F32LE, [&](hid_t creation) {
        H5Pset_chunk(creation, 2, chunk.data());
        filters(creation);
      });
    });
  };
  EXPECT_EQ(with([](hid_t creation) {
              H5Pset_shuffle(creation);
              H5Pset_deflate(creation, 4);
              H5Pset_fletcher32(creation);
            }),
            "read");
  EXPECT_THAT(with([](hid_t creation) {
                H5Pset_deflate(creation, 9);
                H5Pset_deflate(creation, 9);
                H5Pset_fletcher32(creation);
              }),
              HasSubstr(refusal));
  EXPECT_THAT(with([](hid_t creation) {
                H5Pset_shuffle(creation);
                H5Pset_scaleoffset(creation, H5Z_SO_FLOAT_DSCALE, 2);
                H5Pset_fletcher32(creation);
              }),
              HasSubstr(refusal));
  EXPECT_THAT(with([](hid_t) {}), HasSubstr("neither contiguous nor in compressed chunks"));
}

// A chunk that unpacks to more fills the memory; one that unpacks to less is read beyond its end.
TEST_F(HostileHdf5, AChunkUnpacksToItsShape) {
  for (const std::int64_t values : {2, 1'000'000}) {
    testing::write_file(path(), good_);
    // The chunk of a dataset of another size is put into the place of the one of 'whole'.
    const auto other = folder_.path() / "other.h5";
    write_file(other, [&](const Handle& file) {
      const std::vector<double> zeros(static_cast<std::size_t>(values));
      write(create_dataset(file.get(), "d", {H5T_IEEE_F64LE, {values}, {values}}), H5T_NATIVE_DOUBLE, zeros.data());
    });
    const hid_t from = H5Fopen(other.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), to = testing::open_to_change(path());
    const hid_t source = H5Dopen2(from, "d", H5P_DEFAULT), target = H5Dopen2(to, "whole", H5P_DEFAULT);
    const hsize_t zero = 0;
    hsize_t size = 0;
    EXPECT_GE(H5Dget_chunk_storage_size(source, &zero, &size), 0);
    std::vector<char> stored(size);
    std::uint32_t mask = 0;
    EXPECT_GE(H5Dread_chunk(source, H5P_DEFAULT, &zero, &mask, stored.data()), 0);
    EXPECT_GE(H5Dwrite_chunk(target, H5P_DEFAULT, mask, &zero, stored.size(), stored.data()), 0);
    for (const hid_t dataset : {source, target}) H5Dclose(dataset);
    H5Fclose(from);
    H5Fclose(to);
    EXPECT_EQ(outcome(), "a chunk does not unpack to the 48 bytes of its shape") << values;
  }
  std::string bytes = good_;
  const std::size_t chunk = place_of(bytes, "\x78\x5e");  // zlib's first bytes at level 4
  bytes[chunk + 4] = static_cast<char>(bytes[chunk + 4] ^ 1);
  EXPECT_THAT(outcome_of(bytes), HasSubstr("the checksum of a chunk is another"));
}

TEST_F(HostileHdf5, NothingButARegularFileIsOpened) {
  std::filesystem::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(outcome(), "not a regular file; pipes and devices are not read here");
}

// Bytes of the metadata, with right checksums: read or refused in one line. tests/fuzz has more of them, of whole runs.
TEST_F(HostileHdf5, MutantsAreReadOrRefused) {
  const std::size_t text = place_of(good_, std::string(60'000, 'x'));
  int refused = 0, mutants = 0;
  for (std::size_t at = 0; at < good_.size(); at += 22) {
    if (at >= text && at < text + 60'000) at = text + 60'000;
    std::string mutant = good_;
    constexpr std::array<char, 3> others = {'\0', '\xff', '\x08'};
    mutant[at] = others[at / 22 % others.size()];
    if (mutant[at] == '\xff') mutant.replace(at, 3, "\xff\xff\xff");
    ++mutants;
    refused += outcome_of(mutant.substr(0, good_.size())) == "read" ? 0 : 1;
  }
  EXPECT_GT(refused, mutants / 20);
  RecordProperty("mutants", mutants);
  RecordProperty("refused", refused);
}

}  // namespace hostile_hdf5_test
}  // namespace gainlens::runfile::hdf5
