// The test vectors of llama.cpp: inputs separated by a line, and one line of expected ids for each.
#include "core/json.h"
#include "formats/gzip.h"
#include "support/text_file.h"
#include "tokenizers/bpe.h"
#include "tokenizers/byte_level.h"
#include "tokenizers/gguf_vocabularies.h"
#include "tokenizers/tokenizer.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <sstream>

namespace gainlens::tokenizers {
namespace tokenizer_vectors_test {

using Ids = std::vector<TokenId>;

std::vector<std::string> inputs(const std::string& content) {
  const std::string mark = "\n__ggml_vocab_test__\n";
  std::vector<std::string> cases;
  for (std::size_t start = 0;;) {
    const auto end = content.find(mark, start);
    if (end == std::string::npos) return cases;  // nothing follows the last mark
    cases.push_back(content.substr(start, end - start));
    start = end + mark.size();
  }
}

void expect_vectors(const Tokenizer& tokenizer, const std::string& name) {
  const auto folder = testing::shared_data("tokenizers/vectors");
  if (!folder) GTEST_SKIP() << "SKIPPED: no tokenizers/vectors in the shared data";
  const auto cases = inputs(formats::read_plain_or_gzip(*folder / ("ggml-vocab-" + name + ".gguf.inp"), 1 << 20));
  std::istringstream expected(formats::read_plain_or_gzip(*folder / ("ggml-vocab-" + name + ".gguf.out"), 1 << 20));
  ASSERT_GE(cases.size(), 40u);
  for (const std::string& text : cases) {
    std::string line;
    ASSERT_TRUE(std::getline(expected, line));
    std::istringstream numbers(line);
    EXPECT_EQ(tokenizer.encode(text), Ids(std::istream_iterator<TokenId>(numbers), {})) << Json(text).dump();
  }
  std::string rest;
  EXPECT_FALSE(std::getline(expected, rest)) << "more ids than inputs";
}

TEST(TokenizerVectors, Gpt2) {
  const auto folder = testing::shared_data("tokenizers/gpt2");
  if (!folder) GTEST_SKIP() << "SKIPPED: no tokenizers/gpt2 in the shared data";
  expect_vectors(*open_gpt2_bpe(*folder / "encoder.json.gz", *folder / "vocab.bpe.gz"), "gpt-2");
  expect_vectors(*testing::open_tokenizer(testing::gpt2_gguf(*folder / "encoder.json.gz", *folder / "vocab.bpe.gz")),
                 "gpt-2");
}

TEST(TokenizerVectors, Llama) {
  const auto model = testing::shared_data("tokenizers/llama2/tokenizer.model");
  if (!model) GTEST_SKIP() << "SKIPPED: no tokenizers/llama2 in the shared data";
  expect_vectors(*open_sentencepiece(*model), "llama-spm");
  expect_vectors(*testing::open_tokenizer(testing::llama_gguf(*model)), "llama-spm");
}

/// Byte strings in order of rank, from lines "base64 rank".
std::vector<std::string> read_ranks(const std::string& content) {
  std::vector<std::string> tokens;
  std::istringstream lines(content);
  std::string encoded;
  std::size_t rank = 0;
  while (lines >> encoded >> rank) {
    EXPECT_EQ(rank, tokens.size());
    std::string bytes(encoded.size(), '\0');
    const int size =
        EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                        reinterpret_cast<const unsigned char*>(encoded.data()), static_cast<int>(encoded.size()));
    EXPECT_GE(size, 0);
    const auto padding = static_cast<std::size_t>(std::count(encoded.begin(), encoded.end(), '='));
    tokens.push_back(bytes.substr(0, static_cast<std::size_t>(std::max(size, 0)) - padding));
  }
  return tokens;
}

/// The two parts from which a token is merged: its bytes, merged by lower ranks than its own until two parts are left.
std::vector<std::string> parts_of(const std::string& token, std::size_t rank,
                                  const std::unordered_map<std::string, std::size_t>& ranks) {
  std::vector<std::string> parts;
  for (const char byte : token) parts.emplace_back(1, byte);
  for (;;) {
    std::size_t best = rank, at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks.find(parts[i] + parts[i + 1]);
      if (found != ranks.end() && found->second < best) {
        best = found->second;
        at = i;
      }
    }
    if (best == rank) return parts;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

std::string mapped(std::string_view bytes) {
  std::string text;
  append_byte_level(bytes, text);
  return text;
}

/// Tokens and merges as byte-level BPE writes them, from tiktoken's ranks.
struct BytePairs {
  std::vector<std::string> tokens;
  std::vector<Bpe::Merge> merges;
};

BytePairs byte_pairs(const std::vector<std::string>& tokens) {
  std::unordered_map<std::string, std::size_t> ranks;
  for (std::size_t rank = 0; rank < tokens.size(); ++rank) ranks.emplace(tokens[rank], rank);
  BytePairs result;
  for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
    result.tokens.push_back(mapped(tokens[rank]));
    if (tokens[rank].size() == 1) continue;
    const auto parts = parts_of(tokens[rank], rank, ranks);
    EXPECT_EQ(parts.size(), 2u) << "token " << rank;
    result.merges.emplace_back(mapped(parts.front()), mapped(parts.back()));
  }
  return result;
}

/// A tokenizer.json with the pattern and the normaliser of Qwen2's own file.
Json qwen_tokenizer(const BytePairs& pairs) {
  Json vocabulary = Json::object(), merges = Json::array();
  for (std::size_t id = 0; id < pairs.tokens.size(); ++id) vocabulary[pairs.tokens[id]] = id;
  for (const auto& [left, right] : pairs.merges) merges.push_back({left, right});
  const char* pattern = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                        R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const Json split = {
      {"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  const Json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  return {{"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
}

testing::GgufBytes qwen_gguf(const BytePairs& pairs) {
  std::vector<std::string> lines;
  for (const auto& [left, right] : pairs.merges) lines.push_back(left + " " + right);
  return testing::gpt2_gguf(pairs.tokens, std::vector<std::int32_t>(pairs.tokens.size(), testing::normal_token), lines,
                            "qwen2");
}

TEST(TokenizerVectors, Qwen2) {
  const auto ranks = testing::shared_data("tokenizers/qwen/qwen.tiktoken.gz");
  if (!ranks) GTEST_SKIP() << "SKIPPED: no tokenizers/qwen in the shared data";
  const BytePairs pairs = byte_pairs(read_ranks(formats::read_plain_or_gzip(*ranks, 64 << 20)));
  const testing::TemporaryFolder folder;
  const auto tokenizer =
      open_tokenizer_json(testing::write_file(folder.path() / "tokenizer.json", qwen_tokenizer(pairs).dump()));
  EXPECT_EQ(tokenizer->vocabulary_size(), 151643);
  expect_vectors(*tokenizer, "qwen2");
  expect_vectors(*testing::open_tokenizer(qwen_gguf(pairs)), "qwen2");
}

}  // namespace tokenizer_vectors_test
}  // namespace gainlens::tokenizers
