// GGUF files with one error each. Each must be refused with one line that names the file, the byte and the error.
#include "formats/gguf_file.h"
#include "formats/safetensors_bytes.h"
#include "support/gguf_bytes.h"

#include <ostream>
#include <utility>
#include <vector>

namespace gainlens::formats {
namespace broken_gguf_test {

using testing::GgmlType;
using testing::GgufBytes;
using testing::TemporaryFolder;

// A file with two keys and two tensors. The bytes: the header is 24 bytes long; key "n" at 24, its kind at 33, its
// value at 37; key "t" at 41, its kind at 50, its length at 54, its text at 62; tensor "a" at 64: dimensions 73, sizes
// 77 and 85, type 93, offset 97; tensor "b" at 105: dimensions 114, size 118, type 126, offset 130. The header part
// ends at 138. The data begin at 160: 48 bytes of a, 16 of padding, 8 of b, 24 of padding.
GgufBytes good() {
  GgufBytes gguf;
  gguf.add("n", 1u).add("t", "xy");
  gguf.tensor("a", {3, 4}, std::vector<float>(12, 1)).tensor("b", {2}, {1, 2});
  return gguf;
}

/// The good file with these bytes at this place.
template <typename Number>
std::string with(std::size_t place, Number value) {
  std::string bytes = good().bytes();
  return bytes.replace(place, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
}
std::string with_text(std::size_t place, const std::string& text) {
  return good().bytes().replace(place, text.size(), text);
}

/// A file with only this key.
template <typename Value>
std::string with_key(const std::string& key, const Value& value) {
  return GgufBytes().add(key, value).bytes();
}

/// A file with one tensor of this type and shape, with `bytes` bytes of data.
std::string with_tensor(GgmlType type, const std::vector<std::uint64_t>& shape, std::size_t bytes) {
  return GgufBytes().tensor("w", type, shape, std::string(bytes, 'x')).bytes();
}

struct Broken {
  const char* name;
  std::string bytes;
  const char* message;
};
void PrintTo(const Broken& broken, std::ostream* out) {
  *out << broken.name;
}

std::vector<Broken> broken_files() {
  const std::uint64_t huge = ~std::uint64_t{0};
  std::vector<Broken> files;
  // One statement each: with one initializer list, compiling with the sanitizers takes minutes.
  const auto add = [&](const char* name, const std::string& bytes, const char* message) {
    files.push_back({name, bytes, message});
  };
  // Header
  add("Empty", "", "byte 0: a magic number of 4 bytes, of which 0 are there");
  add("Safetensors", safetensors_bytes("{}", ""),
      "byte 0: begins with '\\x02\\x00\\x00\\x00'; a GGUF file begins with 'GGUF'");
  add("OldFormat", with_text(0, "ggjt"), "byte 0: begins with 'ggjt'; a GGUF file begins with 'GGUF'");
  add("VersionOne", with(4, 1u), "byte 4: version 1; 2 and 3 are read");
  add("VersionFour", with(4, 4u), "byte 4: version 4; 2 and 3 are read");
  add("VersionZero", with(4, 0u), "byte 4: version 0; 2 and 3 are read");
  add("BigEndian", with(4, 0x03000000u),
      "byte 4: version 0x03000000: written for big-endian machines; only little-endian files are read");
  add("TensorsHuge", with(8, huge), "byte 8: a count of tensors of 18446744073709551615; at most 65536 are allowed");
  add("TensorsBeyondFile", with(8, std::uint64_t{10}), "byte 8: a count of tensors of 10, but only 240 bytes follow");
  add("KeysHuge", with(16, huge), "byte 16: a count of keys of 18446744073709551615; at most 65536 are allowed");
  add("KeysBeyondFile", with(16, std::uint64_t{17}), "byte 16: a count of keys of 17, but only 232 bytes follow");
  // Keys
  add("KeyEmpty", with_key("", 1u), "byte 24: a key of 0 bytes; must have 1 to 65535");
  add("KeyLengthHuge", with(24, huge), "byte 24: a key of 18446744073709551615 bytes; must have 1 to 65535");
  add("KeyBeyondFile", with(24, std::uint64_t{1000}),
      "byte 32: a key of 1000 bytes, of which 224 are there; the file is cut short or damaged");
  add("KeyNotUtf8", with_text(32, "\xff"), "byte 24: a key '\\xff' is not UTF-8");
  add("KeyWithControls", with_text(32, "\n"), "byte 24: a key '\\x0a' has control characters; the file is damaged");
  add("KeyTwice", with_text(49, "n"), "byte 41: key 'n': this key is there twice");
  add("KindUnknown", with(33, 13u), "byte 33: key 'n': a kind of value of 13; must be between 0 and 12");
  add("TextBeyondFile", with(54, std::uint64_t{500}), "byte 62: key 't': a text of 500 bytes, of which 194 are there");
  add("TextLengthHuge", with(54, huge), "byte 62: key 't': a text of 18446744073709551615 bytes");
  add("BooleanTwo", with_key("b", true).replace(37, 1, "\x02"), "byte 37: key 'b': a boolean of 2; must be 0 or 1");
  // Arrays: element kind at 37, count at 41, elements at 49
  const auto array = [](const auto& values) { return GgufBytes().add_list("l", values).bytes(); };
  const auto with_number = [](std::string bytes, std::size_t place, auto value) {
    return bytes.replace(place, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
  };
  const std::string numbers = array(std::vector<float>{1, 2}), texts = array(std::vector<std::string>{"a", "bc"});
  add("ArrayOfArrays", with_number(numbers, 37, 9u),
      "byte 37: key 'l': an array of arrays; only arrays of plain values and texts are read");
  add("ArrayKindUnknown", with_number(numbers, 37, 99u),
      "byte 37: key 'l': a kind of elements of 99; must be between 0 and 12");
  add("ArrayBeyondFile", with_number(numbers, 41, std::uint64_t{5}),
      "byte 41: key 'l': a count of elements of 5, but only 15 bytes follow");
  add("ArrayCountHuge", with_number(numbers, 41, huge),
      "byte 41: key 'l': a count of elements of 18446744073709551615");
  add("ArrayTextsHuge", with_number(texts, 41, std::uint64_t{1} << 61),
      "byte 41: key 'l': a count of elements of 2305843009213693952");
  add("ArrayTextBeyondFile", with_number(texts, 58, std::uint64_t{77}), "byte 66: key 'l': a text of 77 bytes");
  add("ArrayBooleanTwo", array(std::vector<bool>{true, false}).replace(50, 1, "\x07"),
      "byte 50: key 'l': a boolean of 7; must be 0 or 1");
  // Alignment
  constexpr const char* alignment = "general.alignment";
  add("AlignmentZero", with_key(alignment, 0u),
      "byte 53: key 'general.alignment': 0; must be between 8 and 2147483648");
  add("AlignmentFour", with_key(alignment, 4u), "key 'general.alignment': 4; must be between 8");
  add("AlignmentOdd", with_key(alignment, 48u), "key 'general.alignment': 48; must be a power of two, stored as u32");
  add("AlignmentWide", with_key(alignment, std::uint64_t{32}),
      "key 'general.alignment': 32; must be a power of two, stored as u32");
  add("AlignmentText", with_key(alignment, "32"), "key 'general.alignment': holds text; must be integers");
  add("AlignmentHuge", GgufBytes().add(alignment, 1u << 31).tensor("w", {1}, {1}).bytes(),
      "ends at byte 2147483652, beyond the 128 bytes");
  // Tensors
  add("NameEmpty", with(64, std::uint64_t{0}), "byte 64: a tensor name of 0 bytes; must have 1 to 1024");
  add("NameLong", GgufBytes().tensor(std::string(1025, 'w'), {1}, {1}).bytes(),
      "byte 24: a tensor name of 1025 bytes; must have 1 to 1024");
  add("NameNotUtf8", with_text(72, "\xc0"), "byte 64: a tensor name '\\xc0' is not UTF-8");
  add("TensorTwice", with_text(113, "a"), "byte 105: tensor 'a': this tensor is there twice, first at byte 64");
  add("FiveDimensions", with(73, 5u), "byte 73: tensor 'a': 5 dimensions; at most 4 are allowed");
  add("DimensionsHuge", with(73, ~0u), "byte 73: tensor 'a': 4294967295 dimensions; at most 4 are allowed");
  add("SizeNegative", with(77, huge), "byte 77: tensor 'a': size in its shape: 18446744073709551615 is out of range");
  add("SizeOverflow", with(77, std::uint64_t{1} << 62), "byte 64: tensor 'a': 3 x 4611686018427387904 is too large");
  add("BytesOverflow", with(118, std::uint64_t{1} << 62), "byte 105: tensor 'b': 4611686018427387904 x 4 is too large");
  add("TypeNotRead", with_tensor(GgmlType::iq3_s, {256}, 110),
      "byte 45: tensor 'w': its type IQ3_S (type 21) cannot be read; allowed are F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, "
      "Q8_0, Q2_K, Q3_K, "
      "Q4_K, "
      "Q5_K, Q6_K, IQ4_NL, IQ4_XS, BF16, MXFP4");
  add("TypeOfIntegers", with_tensor(GgmlType::i32, {2}, 8), "its type I32 (type 26) cannot be read");
  add("TypeUnknown", with(93, 4u), "byte 93: tensor 'a': its type type 4 cannot be read");
  add("HalfABlock", with_tensor(GgmlType::q8_0, {34, 16}, 17 * 34),
      "byte 24: tensor 'w': a last dimension of 16; Q8_0 comes in blocks of 32, so it must be a multiple of that");
  add("HalfAnIq4NlBlock", with_tensor(GgmlType::iq4_nl, {18, 16}, 9 * 18),
      "tensor 'w': a last dimension of 16; IQ4_NL comes in blocks of 32, so it must be a multiple of that");
  add("HalfAnIq4XsBlock", with_tensor(GgmlType::iq4_xs, {2, 128}, 136),
      "tensor 'w': a last dimension of 128; IQ4_XS comes in blocks of 256, so it must be a multiple of that");
  add("Iq4XsTruncated", with_tensor(GgmlType::iq4_xs, {2, 256}, 136), "tensor 'w'");
  add("ScalarBlock", with_tensor(GgmlType::q4_k, {}, 144), "a last dimension of 1; Q4_K comes in blocks of 256");
  add("OffsetUneven", with(130, std::uint64_t{65}),
      "byte 130: tensor 'b': offset 65; must be a multiple of the alignment, 32");
  add("OffsetHuge", with(130, huge - 31),
      "byte 130: tensor 'b': begins at byte 18446744073709551584 of the data; after tensor 'a' it must begin at byte "
      "64");
  add("SizeBeyondFile", with(118, std::uint64_t{9}),
      "byte 130: tensor 'b': shape [9] of F32 ends at byte 260, beyond the 256 bytes of the file");
  add("SameBytes", with(130, std::uint64_t{0}),
      "byte 97: tensor 'a': begins at byte 0 of the data, inside tensor 'b', which ends at 8");
  add("Overlap", with(130, std::uint64_t{32}),
      "byte 130: tensor 'b': begins at byte 32 of the data, inside tensor 'a', which ends at 48");
  add("Gap", with(130, std::uint64_t{96}),
      "byte 130: tensor 'b': begins at byte 96 of the data; after tensor 'a' it must begin at byte 64");
  add("GapAtStart", with(97, std::uint64_t{128}),
      "begins at byte 64 of the data; after the start of the data it must begin at byte 0");
  add("DataCutByOne", good().bytes().substr(0, 231),
      "byte 130: tensor 'b': shape [2] of F32 ends at byte 232, beyond the 231 bytes of the file");
  add("DataMissing", good().bytes().substr(0, 160),
      "byte 97: tensor 'a': shape [3, 4] of F32 ends at byte 208, beyond the 160 bytes");
  add("BytesAfterTheLast", good().bytes() + "x",
      "byte 232: 25 bytes after tensor 'b'; nothing but padding may follow it");
  add("BytesWithoutTensors", with_key("n", 1u) + std::string(32, 'x'),
      "bytes after the start of the data; nothing but padding may follow it");
  // Split files
  add("SplitWithoutNumber", with_key("split.count", std::uint16_t{2}), "no key 'split.no' in its metadata");
  add("SplitOfText", with_key("split.count", "2"), "key 'split.count': holds text; must be integers");
  add("SplitNegative", with_key("split.count", std::int16_t{-2}), "key 'split.count': -2; must be between 0 and 65535");
  return files;
}

class BrokenGguf : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenGguf, IsRefusedInOneLine) {
  const TemporaryFolder folder;
  const auto path = write_bytes(folder.path() / "m.gguf", GetParam().bytes);
  EXPECT_THAT([&] { GgufFile::open(path); }, refused_with(GetParam().message));
  EXPECT_THAT([&] { GgufFile::open(path); }, refused_with(path.string() + ": "));
}

INSTANTIATE_TEST_SUITE_P(Mutants, BrokenGguf, ::testing::ValuesIn(broken_files()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(BrokenGgufBase, TheFileTheyComeFromIsValid) {
  const TemporaryFolder folder;
  ASSERT_EQ(good().bytes().size(), 256u);
  EXPECT_EQ(GgufFile::open(good().write(folder.path() / "m.gguf")).entries().size(), 2u);
}

}  // namespace broken_gguf_test
}  // namespace gainlens::formats
