// Reading and writing of valid files. Invalid files are in broken_safetensors_test.cpp.
#include "formats/safetensors.h"

#include "core/json.h"
#include "formats/safetensors_bytes.h"
#include "support/file_size_limit.h"

#include <array>
#include <cstring>
#include <vector>

namespace gainlens::formats {
namespace safetensors_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryFolder;

TEST(TensorFile, ReadsAFileMadeByHand) {
  const TemporaryFolder folder;
  // 1.0 and -2.0 are 00 00 80 3f and 00 00 00 c0 in little-endian float32; the int8 tensor comes first in the data.
  const std::string header = R"({"__metadata__":{"format":"pt"},)" + entry("w", "F32", "[1,2]", "3,11") + "," +
                             entry("ids", "I8", "[3]", "0,3") + "}  ";
  const auto path = write_bytes(folder.path() / "m.safetensors",
                                safetensors_bytes(header, std::string("\x01\x02\xff\0\0\x80\x3f\0\0\0\xc0", 11)));
  const TensorFile file = TensorFile::open(path);
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(file.entries().size(), 2u);
  EXPECT_EQ(file.metadata().at("format"), "pt");

  const TensorEntry& w = file.at("w");
  EXPECT_EQ(w.name, "w");
  EXPECT_EQ(w.dtype, DType::f32);
  EXPECT_THAT(w.shape, ElementsAre(1, 2));
  std::array<float, 2> values{};
  ASSERT_EQ(w.bytes.size(), sizeof(values));
  std::memcpy(values.data(), w.bytes.data(), sizeof(values));
  EXPECT_THAT(values, ElementsAre(1.0f, -2.0f));
  EXPECT_THAT(file.at("ids").bytes, ElementsAre(std::byte{1}, std::byte{2}, std::byte{255}));
}

TEST(TensorFile, ScalarsEmptyTensorsAndNoTensors) {
  const TemporaryFolder folder;
  const std::string header = object(entry("empty", "F64", "[0,7]", "4,4") + "," + entry("scalar", "F32", "[]", "0,4"));
  const TensorFile file = TensorFile::open(write_bytes(folder.path() / "a", safetensors_bytes(header, "abcd")));
  EXPECT_THAT(file.at("scalar").shape, IsEmpty());
  EXPECT_THAT(file.at("empty").bytes, IsEmpty());
  EXPECT_THAT(TensorFile::open(write_bytes(folder.path() / "b", safetensors_bytes("{}", ""))).entries(), IsEmpty());
}

TEST(TensorFile, OutlivesMovesAndItsFile) {
  const TemporaryFolder folder;
  const auto path = write_bytes(folder.path() / "a", safetensors_bytes(object(entry("a", "U8", "[1]", "0,1")), "x"));
  TensorFile first = TensorFile::open(path);
  const std::span<const std::byte> bytes = first.at("a").bytes;
  const TensorFile moved = std::move(first);
  std::filesystem::remove(path);
  EXPECT_EQ(bytes[0], std::byte{'x'});
  EXPECT_EQ(moved.at("a").bytes.data(), bytes.data());
}

TEST(TensorFile, MissingTensorGetsTheNearestName) {
  const TemporaryFolder folder;
  const TensorFile file = TensorFile::open(
      write_bytes(folder.path() / "a", safetensors_bytes(object(entry("lm_head", "U8", "[1]", "0,1")), "x")));
  EXPECT_TRUE(file.has("lm_head"));
  EXPECT_FALSE(file.has("lm_haed"));
  EXPECT_THAT([&] { file.at("lm_haed"); }, refused_with("a: no tensor 'lm_haed' among its 1; did you mean 'lm_head'?"));
  EXPECT_THAT([&] { file.at("no\nsuch.thing"); }, refused_with("no tensor 'no\\x0asuch.thing' among its 1"));
}

TEST(TensorFile, RealCheckpoint) {
  const std::filesystem::path path = GAINLENS_SOURCE_DIR "/data/demo/gated/model.safetensors";
  const TensorFile file = TensorFile::open(path);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  const TensorEntry& embedding = file.at("model.embed_tokens.weight");
  EXPECT_EQ(embedding.dtype, DType::bf16);
  EXPECT_THAT(embedding.shape, ElementsAre(2048, 96));
  EXPECT_EQ(embedding.bytes.size(), 393216u);  // 2048 x 96 x 2
  std::uintmax_t total = 8 + 11792;            // length and header
  for (const auto& [name, entry] : file.entries()) total += entry.bytes.size();
  EXPECT_EQ(total, std::filesystem::file_size(path));
}

TEST(WriteTensors, GoldenBytes) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.safetensors";
  write_tensors(path, {{"b", DType::u8, {2}, as_bytes("xy")}, {"a", DType::i16, {1, 1}, as_bytes("01")}},
                {{"format", "pt"}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"I16","shape":[1,1],"data_offsets":[0,2]},)"
      R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})";
  ASSERT_EQ(header.size(), 139u);  // 5 spaces to the next multiple of eight
  EXPECT_EQ(read_text_file(path), safetensors_bytes(header + "     ", "01xy"));
}

TEST(WriteTensors, RoundTripOfEveryType) {
  const TemporaryFolder folder;
  const std::string data = "0123456789abcdef0123456789abcdef0123456789abcdef";  // 6 elements of up to 8 bytes
  std::vector<TensorToWrite> tensors;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i16,
                            DType::i8, DType::u8, DType::boolean}) {
    tensors.push_back({"layer \"" + std::string(name_of(dtype)) + "\" ü",
                       dtype,
                       {2, 1, 3},
                       as_bytes(data).first(6 * bytes_per_element(dtype))});
  }
  tensors.push_back({"scalar", DType::f32, {}, as_bytes(data).first(4)});
  tensors.push_back({"empty", DType::f32, {3, 0}, {}});
  const std::map<std::string, std::string> metadata{{"", "empty key"}, {"note", "two\nlines"}};
  write_tensors(folder.path() / "m", tensors, metadata);
  const TensorFile file = TensorFile::open(folder.path() / "m");
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.entries().size(), tensors.size());
  for (const TensorToWrite& tensor : tensors) {
    const TensorEntry& read = file.at(tensor.name);
    EXPECT_EQ(read.dtype, tensor.dtype);
    EXPECT_EQ(read.shape, tensor.shape);
    EXPECT_TRUE(std::equal(read.bytes.begin(), read.bytes.end(), tensor.bytes.begin(), tensor.bytes.end()))
        << tensor.name;
  }
}

TEST(WriteTensors, OrderOfTheCallerDoesNotMatter) {
  const TemporaryFolder folder;
  const TensorToWrite a{"a", DType::u8, {1}, as_bytes("x")}, b{"b", DType::u8, {1}, as_bytes("y")};
  write_tensors(folder.path() / "ab", {a, b});
  write_tensors(folder.path() / "ba", {b, a});
  EXPECT_EQ(read_text_file(folder.path() / "ab"), read_text_file(folder.path() / "ba"));
}

TEST(WriteTensors, WhatDoesNotFitIsNamed) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m";
  const auto x = as_bytes("x");
  const auto write = [&](std::vector<TensorToWrite> tensors) { return [=] { write_tensors(path, tensors); }; };
  EXPECT_THAT(write({{"a", DType::u8, {1}, x}, {"a", DType::i8, {1}, x}}),
              refused_with("m: tensor 'a' is given twice"));
  EXPECT_THAT(write({{"a", DType::f32, {1}, x}}), refused_with("tensor 'a': 1 bytes given; shape [1] of F32 needs 4"));
  EXPECT_THAT(write({{"a", DType::u8, {-1}, x}}), refused_with("negative size -1"));
  EXPECT_THAT(write({{"a", DType::u8, {1, 1, 1, 1, 1, 1, 1, 1, 1}, x}}), refused_with("9 dimensions; at most 8"));
  const std::string block(34, 'x');
  EXPECT_THROW(write({{"a", DType::q8_0, {32}, as_bytes(block)}})(), InternalError);
  EXPECT_THAT(write({{"__metadata__", DType::u8, {1}, x}}), refused_with("reserved"));
  EXPECT_THAT(write({{"\xff", DType::u8, {1}, x}}), refused_with("tensor name '\\xff' is not UTF-8"));
  EXPECT_THAT([&] { write_tensors(path, {}, {{"k", "\xff"}}); }, refused_with("metadata value '\\xff' is not UTF-8"));
  EXPECT_THAT([&] { write_tensors(path / "below", {}); },
              refused_with("below: cannot be written: No such file or directory"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(WriteTensors, FullDiskKeepsTheOldFileAndLeavesNothing) {
  const TemporaryFolder folder;
  const std::string data(100'000, 'x');
  write_tensors(folder.path() / "m", {});
  {
    const testing::FileSizeLimit limit(50'000);
    EXPECT_THAT(
        [&] {
          write_tensors(folder.path() / "m", {{"a", DType::u8, {100'000}, as_bytes(data)}});
        },
        ::testing::ThrowsMessage<RunFailed>(HasSubstr("m: cannot be written: File too large")));
  }
  EXPECT_THAT(TensorFile::open(folder.path() / "m").entries(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "m.tmp"));
}

TEST(BytesFor, ShapeTimesElementSize) {
  EXPECT_EQ(bytes_for(std::array<std::int64_t, 2>{2, 3}, DType::f32, "w"), 24u);
  EXPECT_EQ(bytes_for(std::array<std::int64_t, 2>{3, 64}, DType::q8_0, "w"), 3u * 2 * 34);
  EXPECT_EQ(bytes_for(std::array<std::int64_t, 2>{0, 256}, DType::q4_k, "w"), 0u);
  EXPECT_THAT(
      [] {
        bytes_for(std::array<std::int64_t, 2>{32, 16}, DType::q8_0, "w");
      },
      refused_with("w: a last dimension of 16; Q8_0 comes in blocks of 32"));
  EXPECT_EQ(bytes_for({}, DType::f64, "w"), 8u);
  EXPECT_THAT(([] {
                bytes_for(std::array<std::int64_t, 2>{std::int64_t{1} << 31, std::int64_t{1} << 31}, DType::f64, "w");
              }),
              refused_with("w: 4611686018427387904 x 8 is too large"));
}

}  // namespace safetensors_test
}  // namespace gainlens::formats
