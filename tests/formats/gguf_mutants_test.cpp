// Corrupts every field of a small GGUF file in turn, in many ways. A mutant is refused with one line. If the corrupted
// value is also a valid one, the file opens and is in order.
#include "formats/dequantise.h"
#include "formats/gguf_file.h"
#include "formats/safetensors_bytes.h"
#include "support/gguf_bytes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

namespace gainlens::formats {
namespace gguf_mutants_test {

using testing::GgmlType;
using testing::GgufBytes;
using testing::GgufField;
using testing::TemporaryFolder;

/// A file with every kind of value, an alignment that is not the default, and tensors larger than their padding.
GgufBytes base() {
  GgufBytes gguf(3, 64);
  gguf.add("general.architecture", "llama")
      .add("general.alignment", 64u)
      .add("llama.block_count", 2u)
      .add("llama.theta", 1e4f);
  gguf.add("flag", true).add("small", std::int8_t{-1}).add("wide", std::uint64_t{500}).add("exact", 0.5);
  gguf.add_list("tokens", std::vector<std::string>{"a", "bc", ""}).add_list("types", std::vector<std::int32_t>{1, 3});
  gguf.add_list("flags", std::vector<bool>{true, false});
  gguf.tensor("token_embd.weight", GgmlType::q8_0, {5, 32}, std::string(5 * 34, '\x21'));
  gguf.tensor("blk.0.attn_q.weight", GgmlType::q4_k, {2, 256}, std::string(2 * 144, '\x33'));
  gguf.tensor("blk.0.attn_v.weight", GgmlType::iq4_xs, {2, 256}, std::string(2 * 136, '\x35'));
  gguf.tensor("blk.0.attn_norm.weight", GgmlType::f32, {32}, std::string(32 * 4, '\x3f'));
  gguf.tensor("output.weight", GgmlType::f16, {2, 1, 40}, std::string(160, '\x3c'));
  return gguf;
}

struct Mutant {
  std::string name;
  std::string bytes;
};

std::uint64_t number_in(const std::string& bytes, const GgufField& field) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + field.offset, field.bytes);
  return value;
}

std::string with_bytes(std::string bytes, const GgufField& field, const void* content) {
  return bytes.replace(field.offset, field.bytes, static_cast<const char*>(content), field.bytes);
}

/// Whether a field holds a number; the others hold texts.
bool is_number(const GgufField& field) {
  return field.bytes <= 8 && (field.bytes & (field.bytes - 1)) == 0 && !field.name.ends_with("name") &&
         field.name != "magic" && field.name != "key 'tokens': element" &&
         field.name != "key 'general.architecture': value";
}

/// The field set to zero and to all ones, plus and minus one, doubled, halved, and with single bits flipped.
std::vector<Mutant> number_mutants(const std::string& good, const GgufField& field) {
  const std::uint64_t value = number_in(good, field);
  const std::uint64_t mask = field.bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * field.bytes) - 1;
  std::set<std::uint64_t> others{
      0, mask, value + 1, value - 1, value * 2, value / 2, mask >> 1, value ^ 0x10, value ^ (mask / 2 + 1)};
  std::vector<Mutant> mutants;
  std::set<std::uint64_t> used{value};
  for (const std::uint64_t other : others) {
    const std::uint64_t stored = other & mask;
    if (used.insert(stored).second)
      mutants.push_back({fmt::format("{} = {}", field.name, stored), with_bytes(good, field, &stored)});
  }
  return mutants;
}

/// The text with bytes that are not UTF-8, with zeros, and with one letter more or less.
std::vector<Mutant> text_mutants(const std::string& good, const GgufField& field) {
  std::vector<Mutant> mutants;
  for (const char byte : {'\xff', '\0', 'Z'}) {
    const std::string text(field.bytes, byte);
    mutants.push_back({fmt::format("{} of bytes {:#04x}", field.name, static_cast<unsigned char>(byte)),
                       with_bytes(good, field, text.data())});
  }
  return mutants;
}

std::vector<Mutant> field_mutants() {
  const std::string good = base().bytes();
  std::vector<Mutant> mutants;
  for (const GgufField& field : base().fields()) {
    for (Mutant& mutant : is_number(field) ? number_mutants(good, field) : text_mutants(good, field))
      mutants.push_back(std::move(mutant));
    mutants.push_back({"a byte before " + field.name, std::string(good).insert(field.offset, 1, '\x01')});
    if (field.bytes == 0) continue;  // an empty text
    mutants.push_back({field.name + " left out", std::string(good).erase(field.offset, field.bytes)});
    mutants.push_back({field.name + " twice", std::string(good).insert(field.offset, good, field.offset, field.bytes)});
  }
  return mutants;
}

/// The message if the file is refused, empty if it opens. A file that opens is read completely and must be in order.
std::string message_of(const std::filesystem::path& path) {
  try {
    const auto file = GgufFile::open(path);
    std::vector<std::pair<const std::byte*, const std::byte*>> places;
    for (const auto& [name, entry] : file.entries()) {
      std::size_t elements = 1;
      for (const std::int64_t size : entry.shape) elements *= static_cast<std::size_t>(size);
      EXPECT_EQ(elements / elements_per_block(entry.dtype) * bytes_per_block(entry.dtype), entry.bytes.size()) << name;
      places.emplace_back(entry.bytes.data(), entry.bytes.data() + entry.bytes.size());
      if (!is_quantised(entry.dtype)) continue;
      std::vector<float> values(elements);
      dequantise(entry.dtype, entry.bytes, values);
    }
    std::sort(places.begin(), places.end());
    for (std::size_t i = 1; i < places.size(); ++i) EXPECT_GE(places[i].first, places[i - 1].second);
    return {};
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

/// Whether no reader can recognise this corruption: another name or value, a kind of the same size, a size within the
/// padding.
bool may_open(const std::string& name) {
  static const std::set<std::string> same_layout{
      "version = 2",
      "key 'llama.block_count': kind = 5",
      "key 'llama.theta': kind = 5",
      "key 'flag': kind = 0",
      "key 'small': kind = 0",
      "key 'wide': kind = 11",
      "key 'exact': kind = 11",
      "key 'types': element kind = 4",
      "key 'types': element kind = 6",
      "key 'flags': element kind = 0",
      "tensor 'token_embd.weight': size = 4",  // 136 bytes instead of 170; with padding both take 192
      "tensor 'blk.0.attn_norm.weight': size = 31",
      "tensor 'output.weight': size = 39",
      "tensor 'output.weight': size = 41",
  };
  if (same_layout.contains(name)) return true;
  if (name.ends_with("name of bytes 0x5a")) return true;
  if (name.starts_with("key 'general.alignment': value")) return false;
  if (name.starts_with("key 'flag'") && !name.ends_with(" = 0")) return false;  // a boolean
  if (name.starts_with("key 'flags'") && name.find("element = 0") == std::string::npos &&
      name.find("element = 1") == std::string::npos)
    return false;
  for (const char* part : {"value =", "value of", "element =", "element of"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(GgufMutants, EveryFieldCorruptedInTurn) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  ASSERT_EQ(message_of(base().write(path)), "");
  std::size_t refused = 0;
  std::vector<std::string> opened;
  const std::vector<Mutant> mutants = field_mutants();
  for (const Mutant& mutant : mutants) {
    const std::string message = message_of(write_bytes(path, mutant.bytes));
    if (message.empty()) {
      opened.push_back(mutant.name);
      EXPECT_TRUE(may_open(mutant.name)) << mutant.name;
    } else {
      ++refused;
      SCOPED_TRACE(mutant.name);
      expect_clear(message, path);
      EXPECT_NE(message.find("byte "), std::string::npos) << message;
    }
  }
  RecordProperty("refused", static_cast<int>(refused));
  RecordProperty("opened", static_cast<int>(opened.size()));
  fmt::print("{} mutants: {} refused, {} opened in order\n", mutants.size(), refused, opened.size());
  EXPECT_GT(refused, 500u);
  EXPECT_FALSE(opened.empty());
}

TEST(GgufMutants, EveryTruncationIsRefused) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  const std::string good = base().bytes();
  const std::size_t end = good.size() - 32;  // the padding of the last tensor may be missing
  for (std::size_t size = 0; size < end; ++size) {
    SCOPED_TRACE(size);
    const std::string message = message_of(write_bytes(path, good.substr(0, size)));
    ASSERT_FALSE(message.empty());
    expect_clear(message, path);
  }
  EXPECT_EQ(message_of(write_bytes(path, good.substr(0, end))), "");
}

TEST(GgufMutants, EveryBitFlipOfTheHeaderIsRefusedOrInOrder) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  const std::string good = base().bytes();
  const std::vector<GgufField> fields = base().fields();
  const std::size_t header = fields.back().offset + fields.back().bytes;
  for (std::size_t bit = 0; bit < 8 * header; ++bit) {
    SCOPED_TRACE(bit);
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    const std::string message = message_of(write_bytes(path, bytes));
    if (!message.empty()) expect_clear(message, path);
  }
}

}  // namespace gguf_mutants_test
}  // namespace gainlens::formats
