
#include "core/error.h"
#include "core/random.h"
#include "runfile/made_run.h"
#include "runfile/run_file.h"
#include "runfile/run_reader.h"
#include "runfile/shard_file.h"
#include "runfile/stored.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <functional>

namespace gainlens::runfile {
namespace run_file_proof_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::made_request;
using testing::made_result;
using ::testing::ThrowsMessage;

/// A run file with three of its four shards. The shard of length 24, sample 1 is missing.
class RunFileProof : public ::testing::Test {
 protected:
  RunFileProof() {
    for (const ShardKey& key : {ShardKey{8, 0}, ShardKey{8, 1}, ShardKey{24, 0}}) {
      const fs::path shard = folder_.path() / shard_file_name(key);
      write_shard(shard, request_, key, made_result(request_, key));
      shards_.emplace(key, shard);
    }
    write_run_file(path_, request_, shards_);
  }

  /// The message of the refusal; empty if the file is accepted.
  std::string refusal() const {
    try {
      prove_run_file(path_, request_, shards_);
    } catch (const RunFailed& error) {
      return error.what();
    }
    return {};
  }

  /// The message of the refusal after `change` has changed the open file.
  std::string refusal_after(const std::function<void(hid_t)>& change) const {
    const hid_t file = gainlens::testing::open_to_change(path_);
    change(file);
    EXPECT_GE(H5Fclose(file), 0);
    return refusal();
  }

  static void set_number(hid_t file, const char* name, hsize_t offset_of_last, double number) {
    const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset);
    std::vector<hsize_t> sizes(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
    H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
    std::vector<hsize_t> place(sizes.size(), 0), one(sizes.size(), 1);
    if (offset_of_last > 0) {
      for (std::size_t i = 0; i < sizes.size(); ++i) place[i] = sizes[i] - offset_of_last;
    }
    H5Sselect_hyperslab(space, H5S_SELECT_SET, place.data(), nullptr, one.data(), nullptr);
    const hid_t memory = H5Screate_simple(static_cast<int>(one.size()), one.data(), nullptr);
    EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &number), 0);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(dataset);
  }

  testing::TemporaryFolder folder_;
  Request request_ = made_request();
  std::map<ShardKey, fs::path> shards_;
  fs::path path_ = folder_.path() / "run.h5.tmp";
};

TEST_F(RunFileProof, WhatWasWrittenIsAccepted) {
  EXPECT_EQ(refusal(), "");
}

TEST_F(RunFileProof, OtherNumbersAreNamed) {
  EXPECT_THAT(refusal_after([](hid_t file) { set_number(file, "summary/n_eff", 0, 0.5); }),
              HasSubstr("does not read back as it was written: dataset 'summary/n_eff' differs from the shard of "
                        "length 8, sample 0"));
}

TEST_F(RunFileProof, AnotherNumberOfAQueryIsNamed) {
  EXPECT_THAT(refusal_after([](hid_t file) { set_number(file, "queries/24/entropy", 0, 0.5); }),
              HasSubstr("dataset 'queries/24/entropy' differs from the shard of length 24, sample 0"));
}

TEST_F(RunFileProof, NumbersWithoutAShardAreNamed) {
  EXPECT_THAT(refusal_after([](hid_t file) { set_number(file, "profile/gate", 1, 0.5); }),
              HasSubstr("dataset 'profile/gate' has numbers where there is no shard"));
}

TEST_F(RunFileProof, ChunksWithoutAShardAreNamed) {
  EXPECT_THAT(refusal_after([](hid_t file) { set_number(file, "queries/24/entropy", 1, 0.5); }),
              HasSubstr("dataset 'queries/24/entropy' holds chunks that belong to no shard"));
}

TEST_F(RunFileProof, TheMaskIsProven) {
  EXPECT_THAT(refusal_after([](hid_t file) { set_number(file, "complete", 1, 1); }),
              HasSubstr("'/complete' is not as written"));
}

TEST_F(RunFileProof, UnitsAndScalesAreProven) {
  EXPECT_THAT(refusal_after([](hid_t file) { H5Adelete_by_name(file, "summary/n_eff", "units", H5P_DEFAULT); }),
              HasSubstr("attribute 'units' of 'summary/n_eff' is not as written"));
}

TEST_F(RunFileProof, EveryAttributeIsProven) {
  const std::pair<const char*, const char*> attributes[] = {
      {"/", "title"},
      {"/", "source"},
      {"request", "long_name"},
      {"complete", "coordinates"},
      {"layer", "units"},
      {"queries/24/query", "long_name"},
      {"token_offset", "units"},
      {"attention", "long_name"},
      {"queries/8/key_0_visible", "long_name"},
      {"summary/n_eff", "coordinates"},
      {"summary/bos_mass", "comment"},
  };
  for (const auto& [object, name] : attributes) {
    EXPECT_THAT(refusal_after([&](hid_t file) { H5Adelete_by_name(file, object, name, H5P_DEFAULT); }),
                HasSubstr(fmt::format("attribute '{}' of '{}' is not as written", name, object)));
    write_run_file(path_, request_, shards_);
  }
}

TEST_F(RunFileProof, TheVersionOfTheProgramIsProven) {
  prove_run_file(path_, request_, shards_);
  EXPECT_THAT([&] { prove_run_file(path_, request_, shards_, "1.2"); },
              ThrowsMessage<RunFailed>(HasSubstr("attribute 'gainlens_version' of '/' is not as written")));
  write_run_file(path_, request_, shards_, "1.2");
  prove_run_file(path_, request_, shards_, "1.2");
}

TEST_F(RunFileProof, OtherCoordinatesAreNamed) {
  for (const char* path : {"token_offset", "key_0_visible", "kv_head_of_head", "bin_end", "queries/24/token_offset",
                           "queries/8/key_0_visible"}) {
    EXPECT_THAT(refusal_after([&](hid_t file) { set_number(file, path, 1, 77); }),
                HasSubstr(fmt::format("coordinate '{}' is not as written", path)));
    write_run_file(path_, request_, shards_);
  }
}

TEST_F(RunFileProof, ACoordinateOfAGroupIsThatOfTheRoot) {
  EXPECT_THAT(refusal_after([](hid_t file) { H5Ldelete(file, "summary/attention", H5P_DEFAULT); }),
              HasSubstr("'summary/attention' is missing"));
  const auto link_to_another = [](hid_t file) {
    H5Lcreate_hard(file, "layer", file, "summary/attention", H5P_DEFAULT, H5P_DEFAULT);
  };
  EXPECT_THAT(refusal_after(link_to_another), HasSubstr("'summary/attention' is not '/attention'"));
}

TEST_F(RunFileProof, ALostScaleIsNamed) {
  EXPECT_THAT(refusal_after([](hid_t file) { H5Adelete_by_name(file, "values/norm", "DIMENSION_LIST", H5P_DEFAULT); }),
              HasSubstr("axis 0 of dataset 'values/norm' lost its scale"));
}

TEST_F(RunFileProof, AFileThatCannotBeReadIsRefused) {
  fs::resize_file(path_, fs::file_size(path_) / 2);
  EXPECT_THAT(refusal(), HasSubstr("run.h5.tmp: does not read back as it was written"));
}

/// The bits of all numbers of the file.
std::vector<std::uint64_t> bits_of(const fs::path& path) {
  const RunReader reader = RunReader::open(path);
  std::vector<std::uint64_t> bits;
  for (const std::string& name : reader.names()) {
    for (const double number : reader.read(name).values) bits.push_back(std::bit_cast<std::uint64_t>(number));
  }
  return bits;
}

/// Whether a place lies in a heap of texts and references. If a size in a heap is changed, the library reads beyond its
/// memory.
bool in_heap(const std::string& bytes, std::size_t at) {
  const std::size_t heap = bytes.rfind("GCOL", at);
  if (heap == std::string::npos) return false;
  std::uint64_t size = 0;
  std::memcpy(&size, &bytes[heap + 8], sizeof size);
  return at < heap + size;
}

TEST_F(RunFileProof, ANumberBeyondFloat32IsNotStoredAsInfinity) {
  const ShardKey key{request_.lengths.front(), 0};
  ShardResult result = made_result(request_, key);
  result.summary.at("residual_var").values[1] = 1e60;
  EXPECT_THAT([&] { write_shard(path_.parent_path() / "beyond.h5", request_, key, result); },
              ThrowsMessage<RunFailed>(HasSubstr("summary/residual_var of T")));
  Request wide = request_;
  wide.dtype = "float64";
  write_shard(path_.parent_path() / "within.h5", wide, key, result);
}

TEST_F(RunFileProof, AFlippedByteIsRefusedOrChangesNoNumber) {
  const std::string bytes = testing::bytes_of(path_);
  const auto expected = bits_of(path_);
  Random random(7);
  int refused = 0;
  constexpr int flips = 60;
  for (int flip = 0; flip < flips; ++flip) {
    std::string changed = bytes;
    std::size_t at = random.below(changed.size());
    while (in_heap(bytes, at)) at = random.below(changed.size());
    changed[at] ^= 0x10;
    std::ofstream(path_, std::ios::binary) << changed;
    if (refusal().empty()) {
      EXPECT_TRUE(bits_of(path_) == expected) << "flip " << flip;
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, flips / 2);
}

}  // namespace run_file_proof_test
}  // namespace gainlens::runfile
