// Mutants of one small valid file. Each must be refused with one line that names the file and the error.
#include "formats/safetensors_bytes.h"
#include "formats/tensor_file.h"

#include <array>
#include <ostream>
#include <vector>

namespace gainlens::formats {
namespace broken_safetensors_test {

using testing::TemporaryFolder;

const std::string a = entry("a", "F32", "[2]", "0,8");
const std::string b = entry("b", "I16", "[2,2]", "8,16");
const std::string data = "0123456789abcdef";
const std::string good_header = object(a + "," + b);

std::string mutant(const std::string& header) {
  return safetensors_bytes(header, data);
}
/// The file in which tensor a has this entry; tensor b is unchanged.
std::string with_a(const std::string& fields) {
  return mutant(R"({"a":)" + fields + "," + b + "}");
}
std::string with_shape(const std::string& shape) {
  return with_a(R"({"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,8]})");
}
std::string with_offsets(const std::string& offsets) {
  return with_a(R"({"dtype":"F32","shape":[2],"data_offsets":)" + offsets + "}");
}
std::string with_metadata(const std::string& metadata) {
  return mutant(R"({"__metadata__":)" + metadata + "," + a + "," + b + "}");
}
std::string two(const std::string& first, const std::string& second) {
  return mutant(object(first + "," + second));
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
  const std::string good = mutant(good_header);
  const std::size_t header_end = 8 + good_header.size();
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  std::vector<Broken> files;
  // One statement each: with one initializer list, compiling with the sanitizers takes minutes.
  const auto add = [&](const char* name, const std::string& bytes, const char* message) {
    files.push_back({name, bytes, message});
  };
  // Cut short
  add("Empty", "", "0 bytes; a safetensors file begins with 8 bytes");
  add("SevenBytes", good.substr(0, 7), "7 bytes; a safetensors file begins with 8 bytes");
  add("LengthOnly", good.substr(0, 8), "of which 0 are there; the file is cut short");
  add("HeaderCutByOne", good.substr(0, header_end - 1), "the file is cut short or not safetensors");
  add("NoData", good.substr(0, header_end), "data_offsets [0, 8] reach beyond the 0 bytes of data");
  add("DataCutWithinFirst", good.substr(0, header_end + 7), "tensor 'a': data_offsets [0, 8] reach beyond the 7 bytes");
  add("DataCutByOne", good.substr(0, good.size() - 1), "tensor 'b': data_offsets [8, 16] reach beyond the 15 bytes");
  add("OneByteMore", good + "x", "1 bytes after the last tensor, which ends at byte 16 of 17; nothing may follow it");
  add("BytesWithoutTensors", mutant("{}"), "16 bytes after the last tensor, which ends at byte 0 of 16");
  // The length
  add("LengthZero", safetensors_bytes("", data, 0), "a header of 0 bytes that does not begin with '{'");
  add("LengthTooLong", safetensors_bytes(good_header, data, good_header.size() + 17),
      "the file is cut short or not safetensors");
  add("LengthTooShort", safetensors_bytes(good_header, data, good_header.size() - 1), "header: not valid JSON");
  add("LengthEatsData", safetensors_bytes(good_header, data, good_header.size() + 1), "header: not valid JSON");
  add("LengthOverLimit", safetensors_bytes(good_header, data, 100'000'001),
      "a header of 100000001 bytes; at most 100000000 are allowed");
  add("LengthAtLimit", safetensors_bytes(good_header, data, 100'000'000), "a header of 100000000 bytes, of which");
  add("LengthHuge", safetensors_bytes(good_header, data, ~std::uint64_t{0}),
      "a header of 18446744073709551615 bytes; at most 100000000");
  // The JSON
  add("LeadingSpace", mutant(" " + good_header), "that does not begin with '{'");
  add("HeaderIsArray", mutant("[]"), "that does not begin with '{'");
  add("NotJson", mutant("{hello}"), "header: not valid JSON at byte 2");
  add("NotUtf8", mutant("{\"\xff\":1}"), "header: not valid JSON");
  add("JsonTwice", mutant(good_header + "{}"), "header: not valid JSON");
  add("NulAfterJson", mutant(good_header + std::string("\0hidden", 7)), "a NUL byte");
  add("DeepJson", mutant(R"({"a":)" + deep + "}"), "header: JSON nested deeper than 64 levels");
  add("TensorTwice", mutant(object(a + "," + b + "," + a)), "key 'a' appears twice");
  add("KeyTwice", with_a(R"({"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]})"),
      "key 'dtype' appears twice");
  // Metadata
  add("MetadataList", with_metadata("[]"), "__metadata__ is array; must be an object of strings");
  add("MetadataNumber", with_metadata(R"({"epoch":3})"), "__metadata__ key 'epoch' holds number; must be a string");
  add("MetadataTwice", with_metadata(R"({},"__metadata__":{})"), "key '__metadata__' appears twice");
  // Keys of an entry
  add("EntryNull", with_a("null"), "tensor 'a': its entry is null; must be an object");
  add("EntryNumber", with_a("8"), "tensor 'a': its entry is number");
  add("UnknownKey", with_a(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"sahpe":[2]})"),
      "unknown key 'sahpe'; allowed are dtype, shape, "
      "data_offsets; did you mean 'shape'?");
  add("NoDtype", with_a(R"({"shape":[2],"data_offsets":[0,8]})"), "tensor 'a': key 'dtype' is missing");
  add("NoShape", with_a(R"({"dtype":"F32","data_offsets":[0,8]})"), "tensor 'a': key 'shape' is missing");
  add("NoOffsets", with_a(R"({"dtype":"F32","shape":[2]})"), "tensor 'a': key 'data_offsets' is missing");
  // dtype
  add("DtypeUnknown", two(entry("a", "F8_E5M2", "[8]", "0,8"), b),
      "tensor 'a': dtype 'F8_E5M2' cannot be read; allowed are F64, F32, F16, BF16,");
  add("DtypeLowerCase", two(entry("a", "f32", "[2]", "0,8"), b), "dtype 'f32' cannot be read");
  add("DtypeNumber", with_a(R"({"dtype":32,"shape":[2],"data_offsets":[0,8]})"),
      "tensor 'a': dtype is number; must be a string, one of F64");
  add("DtypeTooWide", two(entry("a", "F64", "[2]", "0,8"), b),
      "tensor 'a': data_offsets span 8 bytes; shape [2] of F64 needs 16");
  add("DtypeTooNarrow", two(entry("a", "F16", "[2]", "0,8"), b), "shape [2] of F16 needs 4");
  // shape
  add("ShapeNumber", with_shape("2"), "tensor 'a': shape is number; must be an array of sizes");
  add("ShapeNegative", with_shape("[-2]"), "tensor 'a': shape holds -2; each must be a whole number");
  add("ShapeFraction", with_shape("[2.0]"), "shape holds 2.0; each must be a whole number");
  add("ShapeText", with_shape(R"(["2"])"), "shape holds string; each must be a whole number");
  add("ShapeNested", with_shape("[[2]]"), "shape holds array");
  add("ShapeRankNine", with_shape("[1,1,1,1,1,1,1,1,2]"), "tensor 'a': shape has 9 dimensions; at most 8 are allowed");
  add("ShapeTooLarge", with_shape("[4611686018427387905,4]"), "4611686018427387905 x 4 is too large");
  add("ShapeBytesOverflow", with_shape("[4611686018427387906]"),
      "4611686018427387906 x 4 is too large");  // x 4 = 8 modulo 2^64
  add("ShapeBeyondInt64", with_shape("[9223372036854775808]"), "9223372036854775808 is out of range");
  add("ShapeBeyondUint64", with_shape("[99999999999999999999]"), "each must be a whole number");
  add("ShapeOtherSize", with_shape("[3]"), "data_offsets span 8 bytes; shape [3] of F32 needs 12");
  add("ShapeScalar", with_shape("[]"), "shape [] of F32 needs 4");
  add("ShapeZero", with_shape("[0]"), "shape [0] of F32 needs 0");
  // data_offsets
  add("OffsetsText", with_offsets(R"("0,8")"), "tensor 'a': data_offsets is string; must be an array of two numbers");
  add("OffsetsOne", with_offsets("[8]"), "data_offsets is an array of 1; must be an array of two numbers");
  add("OffsetsThree", with_offsets("[0,8,16]"), "data_offsets is an array of 3");
  add("OffsetsNegative", with_offsets("[-8,0]"), "data_offsets holds -8");
  add("OffsetsFraction", with_offsets("[0,8.5]"), "data_offsets holds 8.5");
  add("OffsetsBackwards", with_offsets("[8,0]"), "data_offsets [8, 0]; the end must not lie before the begin");
  add("OffsetsOutside", with_offsets("[16,24]"), "data_offsets [16, 24] reach beyond the 16 bytes");
  add("OffsetsHuge", with_offsets("[18446744073709551608,18446744073709551615]"), "reach beyond the 16 bytes");
  // Tiling
  add("SameBytesTwice", two(a, entry("b", "I16", "[4]", "0,8")),
      "tensor 'b' begins at byte 0, inside tensor 'a', which ends at 8; tensors must not");
  add("Overlap", two(a, entry("b", "I16", "[6]", "4,16")), "tensor 'b' begins at byte 4, inside tensor 'a'");
  add("Inside", two(entry("a", "F32", "[4]", "0,16"), entry("b", "I16", "[2]", "4,8")),
      "tensor 'b' begins at byte 4, inside tensor 'a'");
  add("EmptyInside", two(entry("a", "F32", "[4]", "0,16"), entry("b", "I16", "[0]", "4,4")),
      "tensor 'b' begins at byte 4, inside tensor 'a'");
  add("GapBetween", two(a, entry("b", "I16", "[3]", "10,16")),
      "tensor 'b' begins at byte 10, 2 bytes after tensor 'a'; tensors must leave no gaps");
  add("GapAtStart", two(entry("a", "F32", "[1]", "4,8"), b),
      "tensor 'a' begins at byte 4, 4 bytes after the start of the data");
  add("GapAtEnd", two(a, entry("b", "I16", "[2]", "8,12")),
      "4 bytes after the last tensor, which ends at byte 12 of 16");
  // Names
  add("NameWithControls", two(entry("a\\n\\u001b[31m", "F33", "[2]", "0,8"), b),
      "tensor 'a\\x0a\\x1b[31m': dtype 'F33'");
  add("NameLong", two(entry(std::string(5000, 'n'), "F33", "[2]", "0,8"), b), "n... (5000 bytes)': dtype 'F33'");
  return files;
}

class BrokenSafetensors : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenSafetensors, IsRefusedInOneLine) {
  const TemporaryFolder folder;
  const auto path = write_bytes(folder.path() / "m.safetensors", GetParam().bytes);
  EXPECT_THAT([&] { TensorFile::open(path); }, refused_with(GetParam().message));
  EXPECT_THAT([&] { TensorFile::open(path); }, refused_with(path.string() + ": "));
}

INSTANTIATE_TEST_SUITE_P(Mutants, BrokenSafetensors, ::testing::ValuesIn(broken_files()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(BrokenSafetensorsBase, TheFileTheMutantsComeFromIsValid) {
  const TemporaryFolder folder;
  EXPECT_EQ(TensorFile::open(write_bytes(folder.path() / "m", mutant(good_header))).entries().size(), 2u);
  EXPECT_EQ(TensorFile::open(write_bytes(folder.path() / "m", with_metadata("{}"))).entries().size(), 2u);
  EXPECT_EQ(TensorFile::open(write_bytes(folder.path() / "m", with_shape("[1,1,1,1,1,1,1,2]"))).at("a").shape.size(),
            8u);
}

TEST(BrokenSafetensorsBase, EveryTruncationIsRefused) {
  const TemporaryFolder folder;
  const std::string good = mutant(good_header);
  for (std::size_t size = 0; size < good.size(); ++size) {
    const auto path = write_bytes(folder.path() / "m", good.substr(0, size));
    EXPECT_THROW(TensorFile::open(path), InvalidArgument) << size;
  }
}

}  // namespace broken_safetensors_test
}  // namespace gainlens::formats
