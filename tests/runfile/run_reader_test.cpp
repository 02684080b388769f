#include "runfile/run_reader.h"

#include "core/error.h"
#include "core/json.h"
#include "runfile/hdf5.h"
#include "runfile/made_run.h"
#include "runfile/run_file.h"
#include "runfile/run_folder.h"
#include "runfile/stored.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <functional>

/// The HDF5 library does not free all its memory when it fails on a damaged file. The leak checker must ignore this.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libhdf5";
}

namespace gainlens::runfile {
namespace run_reader_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::bytes_of;
using ::testing::HasSubstr;
using testing::made_request;
using testing::made_value;
using testing::make_run;
using testing::refusal_of;
using testing::TemporaryFolder;
using testing::write_file;

/// The message of the InvalidArgument that opening the run and reading everything throws.
std::string refusal(const fs::path& path) {
  return testing::refusal_of([&] {
    const RunReader reader = RunReader::open(path);
    for (const std::string& name : reader.names()) reader.read(name);
  });
}

class OneRun : public ::testing::Test {
 protected:
  void SetUp() override { make_run(folder_.path(), made_request()); }
  fs::path file() const { return folder_.path() / "run.h5"; }
  /// Opens run.h5 for writing with the plain library, to damage it.
  void damage(const std::function<void(hid_t)>& change) const {
    const hid_t id = gainlens::testing::open_to_change(file());
    ASSERT_GE(id, 0);
    change(id);
    ASSERT_GE(H5Fclose(id), 0);
  }
  void replace(const std::string& name, const hdf5::Layout& layout) const {
    damage([&](hid_t id) {
      ASSERT_GE(H5Ldelete(id, name.c_str(), H5P_DEFAULT), 0);
      hdf5::create_dataset(id, name, layout);
    });
  }

  TemporaryFolder folder_;
};

TEST_F(OneRun, IsReadFromItsFolderOrItsFile) {
  for (const fs::path& path : {folder_.path(), file()}) {
    const RunReader reader = RunReader::open(path);
    EXPECT_EQ(reader.path(), file());
    EXPECT_EQ(reader.request().to_json(), made_request().to_json());
    EXPECT_EQ(reader.lengths(), (std::vector<std::int64_t>{8, 24}));
    EXPECT_EQ(reader.samples(), 2);
    EXPECT_EQ(reader.layers(), (std::vector<std::int64_t>{3, 5}));
    EXPECT_EQ(reader.heads(), 4);
    EXPECT_EQ(reader.kv_heads(), 2);
    EXPECT_EQ(reader.attention(), (std::vector<std::string>{"global", "window:512"}));
    EXPECT_TRUE(reader.complete(1, 1));
    EXPECT_TRUE(reader.has("queries/24/first_mass"));
    EXPECT_FALSE(reader.has("summary/sink_logit_mass"));
  }
}

TEST(RunReader, ARunOfTheFirstStatisticsVersionIsReadWithWhatItHas) {
  const TemporaryFolder folder;
  runfile::Request request = made_request();
  request.version = 1;
  make_run(folder.path(), request);
  const RunReader reader = RunReader::open(folder.path());
  EXPECT_EQ(reader.request().version, 1);
  EXPECT_TRUE(reader.has("summary/n_eff"));
  EXPECT_FALSE(reader.has("summary/sink_bound"));
  EXPECT_FALSE(reader.has("values/min_norm"));
  EXPECT_THAT([&] { make_run(folder.path(), made_request()); },
              ::testing::ThrowsMessage<InvalidArgument>(
                  HasSubstr("made by another version of gainlens (statistics version 1, this one computes 4); sweep "
                            "into a new folder, or read it with report")));
}

bool is_integer(const std::string& name) {
  return std::any_of(schema().begin(), schema().end(),
                     [&](const DatasetInfo& info) { return info.kind == Kind::integer && info.path(8) == name; });
}

TEST_F(OneRun, EveryTextComesBackAtItsPlace) {
  const RunReader reader = RunReader::open(file());
  const std::vector<std::string> texts = reader.read_text("sinks/text");
  ASSERT_EQ(texts.size(), 2u * 2 * 2 * 4 * 16);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::size_t shard = i / (2 * 4 * 16);
    const ShardKey key{reader.lengths().at(shard / 2), static_cast<std::int64_t>(shard % 2)};
    ASSERT_EQ(texts[i], testing::made_text(key, i % (2 * 4 * 16))) << i;
  }
  EXPECT_TRUE(reader.has("sinks/text"));
  EXPECT_THAT(reader.names(), ::testing::Not(::testing::Contains("sinks/text")));
  EXPECT_THAT(
      [&] { reader.read("sinks/text"); },
      ::testing::ThrowsMessage<InvalidArgument>(HasSubstr("dataset 'sinks/text' holds text; numbers are needed here")));
  EXPECT_THAT([&] { reader.read_text("summary/n_eff"); },
              ::testing::ThrowsMessage<InvalidArgument>(HasSubstr("'summary/n_eff' holds numbers; text is needed")));
}

TEST_F(OneRun, NumbersInPlaceOfTextAreRefused) {
  replace("sinks/text", {H5T_STD_I64LE, {2, 2, 2, 4, 16}, {}});
  EXPECT_THAT(refusal(file()), HasSubstr("dataset 'sinks/text' holds numbers of another type"));
}

TEST(RunReader, ARunOfTheThirdVersionHasNoSinks) {
  const TemporaryFolder folder;
  Request request = made_request();
  request.version = 3;
  make_run(folder.path(), request);
  const RunReader reader = RunReader::open(folder.path());
  EXPECT_FALSE(reader.has("sinks/position"));
  EXPECT_FALSE(reader.has("sinks/text"));
  EXPECT_TRUE(reader.has("values/min_norm"));
  EXPECT_THAT([&] { make_run(folder.path(), made_request()); },
              ::testing::ThrowsMessage<InvalidArgument>(HasSubstr("statistics version 3, this one computes 4")));
}

TEST(RunReader, AMissingChunkHasNoSinks) {
  const TemporaryFolder folder;
  {
    auto run = RunFolder::open_or_resume(folder.path(), made_request());
    run.commit({8, 0}, testing::made_result(made_request(), {8, 0}));
    run.combine();
  }
  const RunReader reader = RunReader::open(folder.path());
  const std::size_t second = 2 * 4 * 16;
  EXPECT_EQ(reader.read("sinks/position").values.at(0), 0);
  EXPECT_EQ(reader.read("sinks/position").values.at(second), -1);
  EXPECT_EQ(reader.read_text("sinks/text").at(0), "\u25818.0");
  EXPECT_EQ(reader.read_text("sinks/text").at(second), "");
  EXPECT_TRUE(std::isnan(reader.read("sinks/column_mean").values.at(second)));
}

TEST_F(OneRun, EveryNumberComesBackAtItsPlace) {
  const RunReader reader = RunReader::open(file());
  for (const std::string& name : reader.names()) {
    const Array array = reader.read(name);
    const bool queries = name.starts_with("queries/");
    const std::size_t lengths = queries ? 1 : 2;
    const std::size_t per_shard = array.values.size() / (2 * lengths);
    for (std::size_t i = 0; i < array.values.size(); ++i) {
      const std::size_t shard = i / per_shard;
      const std::int64_t length = queries ? (name.starts_with("queries/8/") ? 8 : 24) : reader.lengths().at(shard / 2);
      const ShardKey key{length, static_cast<std::int64_t>(shard % 2)};
      const auto& made = is_integer(name) ? testing::made_integer : made_value;
      ASSERT_EQ(array.values[i], made(key, i % per_shard)) << name << " " << i;
    }
  }
  EXPECT_EQ(reader.read("summary/nll").values, (std::vector<double>{0.008f, 1.008f, 0.024f, 1.024f}));
  EXPECT_EQ(reader.read("queries/24/first_mass").shape, (std::vector<std::int64_t>{2, 2, 4, 24, 8}));
}

TEST_F(OneRun, AMisspeltNameGetsTheNearest) {
  const RunReader reader = RunReader::open(file());
  try {
    reader.read("summary/neff");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.what(), file().string() + ": has no dataset 'summary/neff'; did you mean 'summary/n_eff'?");
  }
}

TEST(RunReader, Float64RunsKeepEveryBit) {
  const TemporaryFolder folder;
  Request request = made_request();
  request.dtype = "float64";
  auto run = RunFolder::open_or_resume(folder.path(), request);
  ShardResult result = blank_result(request, 8);
  result.summary.at("nll").values = {0.1};
  result.queries.at("gate").values.assign(64, 0.3);
  run.commit({8, 0}, result);
  run.combine();
  const RunReader reader = RunReader::open(folder.path());
  EXPECT_EQ(reader.read("summary/nll").values.at(0), 0.1);
  EXPECT_EQ(reader.read("queries/8/gate").values.at(63), 0.3);
  EXPECT_TRUE(std::isnan(reader.read("queries/8/gate").values.at(64)));
}

TEST(RunReader, ARunWithoutStatisticsHoldsNllAlone) {
  const TemporaryFolder folder;
  Request request = made_request();
  request.statistics = false;
  make_run(folder.path(), request);
  EXPECT_EQ(RunReader::open(folder.path()).names(), std::vector<std::string>{"summary/nll"});
}

TEST(RunReader, AnUnfinishedRunSaysHowToFinish) {
  const TemporaryFolder folder;
  {
    auto run = RunFolder::open_or_resume(folder.path(), made_request());
    run.commit({8, 0}, testing::made_result(made_request(), {8, 0}));
  }
  EXPECT_EQ(refusal(folder.path()),
            folder.path().string() +
                ": has no run.h5: the sweep has not finished (1 of 4 chunks are done); repeat its `gainlens sweep` "
                "command with the same --out, which resumes");
}

TEST(RunReader, TheFinishedChunksOfAStoppedSweepAreARun) {
  const TemporaryFolder folder;
  const fs::path run = folder.path();
  EXPECT_FALSE(open_stopped_sweep(run));
  {
    auto made = RunFolder::open_or_resume(run, made_request());
    EXPECT_THAT(refusal_of([&] { open_stopped_sweep(run); }), HasSubstr("is writing this run"));
    for (const ShardKey& key : {ShardKey{8, 0}, ShardKey{24, 1}})
      made.commit(key, testing::made_result(made_request(), key));
  }
  const auto stopped = open_stopped_sweep(run);
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->proof.shards, 2u);
  EXPECT_THAT(stopped->proof.unproven,
              HasSubstr("The sweep was stopped: 2 of 4 chunks are there. Repeat its gainlens"));
  const RunReader& reader = stopped->reader;
  EXPECT_EQ(reader.path(), run / "run.h5");
  EXPECT_FALSE(fs::exists(reader.path()));
  EXPECT_TRUE(reader.complete(0, 0));
  EXPECT_FALSE(reader.complete(0, 1));
  EXPECT_TRUE(reader.complete(1, 1));
  const std::vector<double> nll = reader.read("summary/nll").values;
  EXPECT_EQ(nll[0], 0.008f);
  EXPECT_TRUE(std::isnan(nll[1]));
  EXPECT_EQ(nll[3], 1.024f);

  const fs::path shard = run / "shards" / "T8-S0.h5";
  const std::string whole = bytes_of(shard);
  write_file(shard, whole.substr(0, whole.size() - 1));
  EXPECT_THAT(refusal_of([&] { open_stopped_sweep(run); }), HasSubstr("T8-S0.h5: its sha256 is "));
  write_file(shard, whole);
  make_run(run, made_request());  // which is not disturbed
  EXPECT_FALSE(open_stopped_sweep(run));
  const TemporaryFolder other;
  make_run(other.path(), made_request());
  EXPECT_EQ(bytes_of(run / "run.h5"), bytes_of(other.path() / "run.h5"));
}

TEST(RunReader, WhatIsNoRunIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal(folder.path()), HasSubstr("is not a run folder (it has neither run.h5 nor request.json)"));
  EXPECT_THAT(refusal(folder.path() / "absent"),
              HasSubstr("absent: no such file or folder; give a run folder or its run.h5"));
  std::ofstream(folder.path() / "text.h5") << "some text";
  EXPECT_THAT(refusal(folder.path() / "text.h5"),
              AllOf(HasSubstr("text.h5: not an HDF5 file"), HasSubstr("it is damaged or not a run of gainlens sweep")));
}

TEST_F(OneRun, AnotherFormatOrVersionIsRefused) {
  EXPECT_THAT(refusal(folder_.path() / "shards/T8-S0.h5"),
              HasSubstr("its format is 'gainlens-shard'; a run of gainlens sweep ('gainlens-sweep')"));
  damage([](hid_t id) {
    H5Adelete(id, "format_version");
    hdf5::write_attribute(id, "format_version", 2);
  });
  EXPECT_THAT(refusal(file()), HasSubstr("its format version is 2; this gainlens reads version 1"));
  damage([](hid_t id) {
    H5Adelete(id, "format_version");
    H5Adelete(id, "format");
    hdf5::write_attribute(id, "format", 7);
  });
  EXPECT_THAT(refusal(file()), HasSubstr("has no attribute 'format'"));
}

TEST_F(OneRun, ShapesTypesAndChunksMustFitTheRequest) {
  replace("summary/n_eff", {H5T_IEEE_F32LE, {2, 2, 2, 3}, {}});
  EXPECT_THAT(refusal(file()), HasSubstr("dataset 'summary/n_eff' has shape [2, 2, 2, 3]; expected [2, 2, 2, 4]"));
  replace("summary/n_eff", {H5T_IEEE_F32LE, {2, 2, 8}, {}});
  EXPECT_THAT(refusal(file()), HasSubstr("dataset 'summary/n_eff' has shape [2, 2, 8]; expected"));
  replace("summary/n_eff", {H5T_IEEE_F64LE, {2, 2, 2, 4}, {}});
  EXPECT_THAT(refusal(file()), HasSubstr("dataset 'summary/n_eff' holds numbers of another type"));
  replace("summary/n_eff", {H5T_IEEE_F32LE, {2, 2, 2, 4}, {2, 2, 2, 4}});
  EXPECT_THAT(refusal(file()), HasSubstr("dataset 'summary/n_eff' is not contiguous"));
  replace("summary/n_eff", {H5T_IEEE_F32LE, {2, 2, 2, 4}, {}});
  EXPECT_EQ(refusal(file()), "accepted");
  replace("queries/8/gate", {H5T_IEEE_F32LE, {2, 2, 4, 8}, {2, 2, 4, 8}});
  EXPECT_THAT(refusal(file()), HasSubstr("dataset 'queries/8/gate' has chunks of [2, 2, 4, 8]; expected [1, 1, 4, 8]"));
  replace("queries/8/gate", {H5T_IEEE_F32LE, {2, 2, 4, 8}, {}});
  EXPECT_THAT(refusal(file()), HasSubstr("dataset 'queries/8/gate' is not chunked"));
  damage([](hid_t id) { H5Ldelete(id, "queries/8/gate", H5P_DEFAULT); });
  EXPECT_THAT(refusal(file()), HasSubstr("dataset 'queries/8/gate' is missing"));
}

TEST_F(OneRun, ScalesAndTextMustAgreeWithTheRequest) {
  damage([](hid_t id) {
    const std::array<std::int64_t, 2> layers = {3, 6};
    const hid_t layer = H5Dopen2(id, "layer", H5P_DEFAULT);
    H5Dwrite(layer, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, layers.data());
    H5Dclose(layer);
  });
  EXPECT_THAT(refusal(file()), HasSubstr("scale 'layer' disagrees with /request"));
  make_run(folder_.path(), made_request());
  damage([](hid_t id) {
    H5Ldelete(id, "attention", H5P_DEFAULT);
    hdf5::write_strings(id, "attention", {"global", "global"}, {2});
  });
  EXPECT_THAT(refusal(file()), HasSubstr("'/attention' disagrees with /request"));
  const auto with_request = [&](const std::string& text) {
    make_run(folder_.path(), made_request());
    damage([&](hid_t id) {
      H5Ldelete(id, "request", H5P_DEFAULT);
      hdf5::write_strings(id, "request", {text}, {});
    });
    return refusal(file());
  };
  EXPECT_THAT(with_request("{"), HasSubstr("run.h5: /request: not valid JSON"));
  Json json = made_request().to_json();
  json["statistics_version"] = 7;
  EXPECT_THAT(with_request(json.dump()),
              HasSubstr("/request: statistics_version is 7; this gainlens reads versions 1 to 4"));
  json = made_request().to_json();
  json["heads"] = 1 << 30;
  EXPECT_THAT(with_request(json.dump()), HasSubstr("dataset 'head' has shape [4]; expected [1073741824]"));
}

TEST_F(OneRun, ClaimedSizesAreComparedWithTheFileBeforeAnythingIsAllocated) {
  Json json = made_request().to_json();
  json["heads"] = std::int64_t{1} << 36;
  damage([&](hid_t id) {
    H5Ldelete(id, "request", H5P_DEFAULT);
    hdf5::write_strings(id, "request", {json.dump()}, {});
    H5Ldelete(id, "head", H5P_DEFAULT);
    // A dataset without storage, which the library would read as half a terabyte of zeros.
    const hsize_t size = hsize_t{1} << 36;
    const hid_t space = H5Screate_simple(1, &size, nullptr);
    H5Dclose(H5Dcreate2(id, "head", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
  });
  EXPECT_THAT(refusal(file()), HasSubstr("dataset 'head' claims 68719476736 values that the file does not hold"));
}

TEST_F(OneRun, DataAndLinksOutOfTheFileAreRefused) {
  damage([](hid_t id) {
    H5Ldelete(id, "summary/n_eff", H5P_DEFAULT);
    H5Lcreate_external("/etc/passwd", "x", id, "summary/n_eff", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_THAT(refusal(file()), HasSubstr("dataset 'summary/n_eff' is missing"));
  damage([](hid_t id) {
    H5Ldelete(id, "summary/n_eff", H5P_DEFAULT);
    const std::array<hsize_t, 4> shape = {2, 2, 2, 4};
    const hid_t space = H5Screate_simple(4, shape.data(), nullptr);
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(properties, "/etc/passwd", 0, 128);
    H5Dclose(H5Dcreate2(id, "summary/n_eff", H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT));
    H5Pclose(properties);
    H5Sclose(space);
  });
  EXPECT_THAT(refusal(file()), HasSubstr("a message of kind 7, which gainlens never writes"));
}

TEST_F(OneRun, TruncatedAnywhereItIsRefused) {
  const std::string bytes = read_text_file(file());
  const fs::path cut = folder_.path() / "cut.h5";
  for (std::size_t i = 0; i < 120; ++i) {
    const std::size_t size = bytes.size() * i / 120;
    std::ofstream(cut, std::ios::binary) << bytes.substr(0, size);
    EXPECT_THAT(refusal(cut), HasSubstr("it is damaged or not a run of gainlens sweep")) << size;
  }
}

TEST_F(OneRun, FlippedBytesAreRefusedOrChangeANumberButNeverCrash) {
  const std::string bytes = read_text_file(file());
  const fs::path changed = folder_.path() / "changed.h5";
  int refused = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    std::string copy = bytes;
    copy[bytes.size() * i / 100] ^= 0x21;
    std::ofstream(changed, std::ios::binary) << copy;
    refused += refusal(changed) != "accepted" ? 1 : 0;
  }
  EXPECT_GT(refused, 10);
}

}  // namespace run_reader_test
}  // namespace gainlens::runfile
