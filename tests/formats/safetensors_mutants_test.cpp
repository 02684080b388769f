// Corrupts every token in the header of a small safetensors file in turn. A mutant is refused with one line. If the
// corrupted token is also a valid one, the file opens and is in order.
#include "formats/safetensors_bytes.h"
#include "formats/tensor_file.h"

#include <cctype>
#include <set>
#include <string>
#include <vector>

namespace gainlens::formats {
namespace safetensors_mutants_test {

using testing::TemporaryFolder;

const std::string header =
    R"({"__metadata__":{"format":"pt"},"a.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("b":{"dtype":"BF16","shape":[],"data_offsets":[24,26]},)"
    R"("c":{"dtype":"I64","shape":[1,5],"data_offsets":[26,66]}})";
const std::string data(66, 'x');

struct Token {
  std::size_t offset;
  std::string text;
};

/// The tokens of a JSON text: strings with their quotes, numbers, and single punctuation marks.
std::vector<Token> tokens_of(const std::string& json) {
  std::vector<Token> tokens;
  for (std::size_t begin = 0; begin < json.size();) {
    std::size_t end = begin + 1;
    if (json[begin] == '"') end = json.find('"', begin + 1) + 1;
    if (std::isdigit(static_cast<unsigned char>(json[begin])) != 0) end = json.find_first_not_of("0123456789", begin);
    tokens.push_back({begin, json.substr(begin, end - begin)});
    begin = end;
  }
  return tokens;
}

/// The texts that replace a token: nothing, the token twice, and wrong tokens of every kind.
std::set<std::string> replacements(const std::string& token) {
  std::set<std::string> all{"",    token + token,          token + " x", "null", "true", "-1",   "1e3",
                            "0.5", "18446744073709551616", "\"\"",       "[]",   "{}",   "\x01", "\xff"};
  if (std::isdigit(static_cast<unsigned char>(token[0])) != 0) {
    const std::uint64_t number = std::stoull(token);
    for (const std::uint64_t other : {number + 1, number - 1, number * 2, number + 256, ~std::uint64_t{0},
                                      std::uint64_t{1} << 63, std::uint64_t{0}})
      all.insert(std::to_string(other));
    all.insert({"0" + token, "\"" + token + "\""});
  }
  if (token[0] == '"')
    all.insert({"\"F8_E4M3\"", "\"Q8_0\"", "\"dtype\"", "\"b\"", token.substr(1), token.substr(0, token.size() - 1),
                "\"\\ud800\""});
  if (token[0] == '"') all.insert(token.substr(0, token.size() - 1) + "\\u0000\"");
  all.erase(token);
  return all;
}

struct Mutant {
  std::string name;
  std::string bytes;
};

std::vector<Mutant> token_mutants() {
  std::vector<Mutant> mutants;
  for (const Token& token : tokens_of(header)) {
    for (const std::string& other : replacements(token.text)) {
      std::string mutant = header;
      mutant.replace(token.offset, token.text.size(), other);
      mutants.push_back(
          {fmt::format("{} at {}: {}", token.text, token.offset, printable(other)), safetensors_bytes(mutant, data)});
    }
  }
  return mutants;
}

/// The message if the file is refused; empty if it opens and is in order.
std::string message_of(const std::filesystem::path& path) {
  try {
    const auto file = TensorFile::open(path);
    std::size_t total = 0;
    for (const auto& [name, entry] : file.entries()) {
      std::size_t needed = bytes_per_element(entry.dtype);
      for (const std::int64_t size : entry.shape) needed *= static_cast<std::size_t>(size);
      EXPECT_EQ(entry.bytes.size(), needed) << name;
      total += needed;
    }
    EXPECT_EQ(total, data.size());
    return {};
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

/// Whether the file may open with this corruption: the writer may choose names of tensors, and names and values of
/// metadata.
bool may_open(const std::string& name) {
  for (const char* free : {"\"format\"", "\"pt\"", "\"a.weight\"", "\"b\"", "\"c\""}) {
    if (name.starts_with(free)) return true;
  }
  return false;
}

TEST(SafetensorsMutants, EveryTokenCorruptedInTurn) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.safetensors";
  ASSERT_EQ(message_of(write_bytes(path, safetensors_bytes(header, data))), "");
  std::size_t refused = 0, opened = 0;
  for (const Mutant& mutant : token_mutants()) {
    SCOPED_TRACE(mutant.name);
    const std::string message = message_of(write_bytes(path, mutant.bytes));
    if (message.empty()) {
      ++opened;
      EXPECT_TRUE(may_open(mutant.name));
    } else {
      ++refused;
      expect_clear(message, path);
    }
  }
  fmt::print("{} mutants: {} refused, {} opened in order\n", refused + opened, refused, opened);
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(opened, 0u);
}

TEST(SafetensorsMutants, EveryLengthButTheTrueOneIsRefused) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.safetensors";
  std::vector<std::uint64_t> lengths{~std::uint64_t{0}, std::uint64_t{1} << 63};
  for (std::uint64_t length = 0; length < header.size() + data.size() + 9; ++length) lengths.push_back(length);
  for (int bit = 0; bit < 64; ++bit) lengths.push_back(header.size() ^ std::uint64_t{1} << bit);
  for (const std::uint64_t length : lengths) {
    if (length == header.size()) continue;
    SCOPED_TRACE(length);
    const std::string message = message_of(write_bytes(path, safetensors_bytes(header, data, length)));
    EXPECT_FALSE(message.empty());
    expect_clear(message, path);
  }
}

TEST(SafetensorsMutants, EveryBitFlipOfTheHeaderIsRefusedOrInOrder) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.safetensors";
  for (std::size_t bit = 0; bit < 8 * header.size(); ++bit) {
    SCOPED_TRACE(bit);
    std::string mutant = header;
    mutant[bit / 8] = static_cast<char>(mutant[bit / 8] ^ 1 << bit % 8);
    const std::string message = message_of(write_bytes(path, safetensors_bytes(mutant, data)));
    if (!message.empty()) expect_clear(message, path);
  }
}

}  // namespace safetensors_mutants_test
}  // namespace gainlens::formats
