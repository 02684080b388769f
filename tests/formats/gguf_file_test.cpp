#include "formats/gguf_file.h"

#include "formats/dequantise.h"
#include "formats/mapped_file.h"
#include "formats/safetensors_bytes.h"
#include "support/gguf_bytes.h"

#include <cstring>
#include <vector>

namespace gainlens::formats {
namespace gguf_file_test {

using testing::GgmlType;
using testing::GgufBytes;
using testing::TemporaryFolder;

std::vector<float> floats_of(const TensorEntry& entry) {
  std::vector<float> values(entry.bytes.size() / sizeof(float));
  std::memcpy(values.data(), entry.bytes.data(), entry.bytes.size());
  return values;
}

GgufBytes two_tensors(std::uint32_t version = 3) {
  GgufBytes gguf(version);
  gguf.add("general.architecture", "llama").add("llama.block_count", 2u);
  gguf.tensor("w", {2, 3}, {1, 2, 3, 4, 5, 6}).tensor("b", {3}, {7, 8, 9});
  return gguf;
}

TEST(GgufFile, GivesMetadataAndTensors) {
  for (const std::uint32_t version : {2u, 3u}) {
    const TemporaryFolder folder;
    const auto path = two_tensors(version).write(folder.path() / "m.gguf");
    const auto file = GgufFile::open(path);
    EXPECT_EQ(file.version(), version);
    EXPECT_EQ(file.files(), std::vector{path});
    EXPECT_EQ(file.metadata().text("general.architecture"), "llama");
    ASSERT_EQ(file.entries().size(), 2u);
    const TensorEntry& w = file.entries().at("w");
    EXPECT_EQ(w.name, "w");
    EXPECT_EQ(w.dtype, DType::f32);
    EXPECT_EQ(w.shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(floats_of(w), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(floats_of(file.entries().at("b")), (std::vector<float>{7, 8, 9}));
  }
}

TEST(GgufFile, EntriesOutliveIt) {
  const TemporaryFolder folder;
  const TensorEntry w = GgufFile::open(two_tensors().write(folder.path() / "m.gguf")).entries().at("w");
  EXPECT_EQ(floats_of(w).back(), 6);
}

TEST(GgufFile, ReadsWhatThePackageWrites) {
  const auto file = GgufFile::open(std::filesystem::path(GAINLENS_SOURCE_DIR) / "tests/formats/golden/kinds.gguf");
  const GgufMetadata& metadata = file.metadata();
  EXPECT_EQ(metadata.integer("kind.u8", 0, 255), 200);
  EXPECT_EQ(metadata.integer("kind.i8", -128, 127), -100);
  EXPECT_EQ(metadata.integer("kind.u16", 0, 65'535), 60'000);
  EXPECT_EQ(metadata.integer("kind.i16", -32'768, 32'767), -30'000);
  EXPECT_EQ(metadata.integer("kind.u32", 0, 4'294'967'295), 4'000'000'000);
  EXPECT_EQ(metadata.integer("kind.i32", -2'147'483'648, 0), -2'000'000'000);
  EXPECT_EQ(metadata.integer("kind.i64", -(std::int64_t{1} << 62), 0), -(std::int64_t{1} << 62));
  EXPECT_THAT([&] { metadata.integer("kind.u64", 0, 1); },
              refused_with("key 'kind.u64': holds 9223372036854775808; must be at most 2^63 - 1"));
  EXPECT_EQ(metadata.number("kind.f32"), static_cast<double>(0.1f));
  EXPECT_EQ(metadata.number("kind.f64"), 0.1);
  EXPECT_TRUE(metadata.boolean("kind.bool"));
  EXPECT_EQ(metadata.text("kind.string"), "Grüße");
  EXPECT_EQ(metadata.texts("list.texts"), (std::vector<std::string_view>{"a", "", "▁the"}));
  EXPECT_EQ(metadata.integers("list.integers"), (std::vector<std::int64_t>{3, -1, 2}));
  EXPECT_EQ(metadata.numbers("list.numbers"), (std::vector<double>{0.5, -1000}));
  EXPECT_EQ(metadata.booleans("list.booleans"), (std::vector<bool>{true, false, true}));

  EXPECT_EQ(file.entries().at("matrix").shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(floats_of(file.entries().at("matrix")), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(file.entries().at("half").dtype, DType::f16);
  const TensorEntry& quantised = file.entries().at("quantised");
  EXPECT_EQ(quantised.shape, (std::vector<std::int64_t>{2, 32}));
  std::vector<float> values(64);
  dequantise(quantised.dtype, quantised.bytes, values);
  EXPECT_NEAR(values[63], 63, 0.25);
}

TEST(GgufFile, AlignmentMovesTheData) {
  const TemporaryFolder folder;
  GgufBytes gguf(3, 256);
  gguf.add("general.alignment", 256u).tensor("a", {1}, {1}).tensor("b", {1}, {2});
  const auto file = GgufFile::open(gguf.write(folder.path() / "m.gguf"));
  EXPECT_EQ(floats_of(file.entries().at("b")), std::vector<float>{2});
  EXPECT_EQ(file.entries().at("b").bytes.data() - file.entries().at("a").bytes.data(), 256);
}

TEST(GgufFile, MayLackTensorsKeysAndTheLastPadding) {
  const TemporaryFolder folder;
  EXPECT_TRUE(
      GgufFile::open(write_bytes(folder.path() / "m.gguf", GgufBytes().bytes().substr(0, 24))).entries().empty());
  const std::string bytes = two_tensors().bytes();  // b has 12 bytes, and 20 of padding
  EXPECT_EQ(GgufFile::open(write_bytes(folder.path() / "m.gguf", bytes.substr(0, bytes.size() - 20))).entries().size(),
            2u);
}

TEST(GgufFile, ScalarsAndEmptyTensorsAreTensors) {
  const TemporaryFolder folder;
  GgufBytes gguf;
  gguf.tensor("empty", {0, 4}, {}).tensor("scalar", {}, {5});
  const auto file = GgufFile::open(gguf.write(folder.path() / "m.gguf"));
  EXPECT_TRUE(file.entries().at("empty").bytes.empty());
  EXPECT_EQ(floats_of(file.entries().at("scalar")), std::vector<float>{5});
}

/// One of three parts of a split file, with one tensor each.
GgufBytes part(int number, int count = 3, int tensors = 3) {
  GgufBytes gguf;
  if (number == 0) gguf.add("general.architecture", "llama");
  gguf.add("split.no", static_cast<std::uint16_t>(number))
      .add("split.count", static_cast<std::uint16_t>(count))
      .add("split.tensors.count", tensors);
  gguf.tensor("w" + std::to_string(number), {2}, {static_cast<float>(number), 0});
  return gguf;
}

std::filesystem::path part_path(const TemporaryFolder& folder, int number) {
  return folder.path() / fmt::format("m-{:05}-of-00003.gguf", number + 1);
}

void write_parts(const TemporaryFolder& folder) {
  for (int number = 0; number < 3; ++number) part(number).write(part_path(folder, number));
}

TEST(GgufFile, AnyPartOpensAll) {
  const TemporaryFolder folder;
  write_parts(folder);
  for (int number = 0; number < 3; ++number) {
    const auto file = GgufFile::open(part_path(folder, number));
    EXPECT_EQ(file.files(), (std::vector{part_path(folder, 0), part_path(folder, 1), part_path(folder, 2)}));
    EXPECT_EQ(file.metadata().text("general.architecture"), "llama");
    ASSERT_EQ(file.entries().size(), 3u);
    EXPECT_EQ(floats_of(file.entries().at("w2")).front(), 2);
  }
}

TEST(GgufFile, PartsThatDoNotFitAreRefused) {
  const TemporaryFolder folder;
  const auto open = [&] { GgufFile::open(part_path(folder, 0)); };
  write_parts(folder);
  std::filesystem::remove(part_path(folder, 1));
  EXPECT_THAT(open,
              refused_with("m-00002-of-00003.gguf: no such file; it is part 2 of 3 of this checkpoint, fetch it"));
  part(2).write(part_path(folder, 1));
  EXPECT_THAT(
      open, refused_with("m-00002-of-00003.gguf: part 2 of 3 by its name, but part 3 by its metadata; fetch it again"));
  part(1, 2).write(part_path(folder, 1));
  EXPECT_THAT(open, refused_with("m-00002-of-00003.gguf: split.count is 2, but 3 in "));
  part(1, 3, 4).write(part_path(folder, 1));
  EXPECT_THAT(open, refused_with("split.tensors.count is 4, but 3 in "));
  part(1).add("general.architecture", "gpt2").write(part_path(folder, 1));
  EXPECT_THAT(open, refused_with("general.architecture 'gpt2', but 'llama' in "));
  part(1).tensor("w0", {1}, {1}).write(part_path(folder, 1));
  EXPECT_THAT(open, refused_with("m-00002-of-00003.gguf: tensor 'w0' is in an earlier part of this checkpoint too"));
  part(1).tensor("extra", {1}, {1}).write(part_path(folder, 1));
  EXPECT_THAT(open, refused_with("split.tensors.count is 3, but the 3 parts hold 4; fetch them again"));
  two_tensors().write(part_path(folder, 1));
  EXPECT_THAT(open, refused_with("split.count is 1, but 3 in "));
}

TEST(GgufFile, PartByAnotherNameIsRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT(
      [&] { GgufFile::open(part(1).write(folder.path() / "m-00001-of-00003.gguf")); },
      refused_with(
          "part 2 of 3 by this file's metadata; its name must end with '-00002-of-00003.gguf', to find the others"));
}

TEST(GgufFile, PartNumberBeyondTheCountIsRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { GgufFile::open(part(3).write(part_path(folder, 0))); },
              refused_with("key 'split.no': 3; must be between 0 and 2"));
}

TEST(GgufFile, ShortenedFileIsNoticed) {
  const TemporaryFolder folder;
  const auto path = two_tensors().write(folder.path() / "m.gguf");
  const auto file = GgufFile::open(path);
  const TensorEntry& w = file.entries().at("w");
  EXPECT_NO_THROW(check_still_whole(w));
  std::filesystem::resize_file(path, 100);
  EXPECT_THAT([&] { check_still_whole(w); }, refused_with("m.gguf: was shortened from "));
}

TEST(CheckStillWhole, EntriesOfSafetensorsToo) {
  const TemporaryFolder folder;
  const auto path = write_bytes(folder.path() / "m", safetensors_bytes(object(entry("a", "U8", "[2]", "0,2")), "xy"));
  const auto file = TensorFile::open(path);
  EXPECT_NO_THROW(check_still_whole(file.at("a")));
  std::filesystem::resize_file(path, 8);
  EXPECT_THAT([&] { check_still_whole(file.at("a")); },
              refused_with("to 8 bytes while it was read; leave the file alone"));
}

TEST(CheckStillWhole, BytesInMemoryAlwaysAre) {
  EXPECT_NO_THROW(check_still_whole(TensorEntry{"a", DType::u8, {2}, as_bytes("xy")}));
}

TEST(CheckStillWhole, FileReplacedByRenameIsWhole) {
  const TemporaryFolder folder;
  const auto path = two_tensors().write(folder.path() / "m.gguf");
  const auto file = GgufFile::open(path);
  std::filesystem::rename(write_bytes(folder.path() / "other", ""), path);
  EXPECT_NO_THROW(check_still_whole(file.entries().at("w")));
}

}  // namespace gguf_file_test
}  // namespace gainlens::formats
