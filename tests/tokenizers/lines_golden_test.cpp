// Ids of 10,000 lines by the field's standard tokenizers: golden/lines.json and lines-*.crc32, made by
// tests/golden/make_lines_golden.py.
#include "core/json.h"
#include "core/sha256.h"
#include "data/text.h"
#include "formats/gzip.h"
#include "support/file_bytes.h"
#include "support/gemma.h"
#include "support/shared_data.h"
#include "tokenizers/gguf_vocabularies.h"
#include "tokenizers/text_encoder.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <optional>

namespace gainlens::tokenizers {
namespace lines_golden_test {

using Ids = std::vector<TokenId>;

const Json& golden() {
  static const Json document = read_json_file(GAINLENS_SOURCE_DIR "/tests/tokenizers/golden/lines.json");
  return document;
}

void append_if_not_blank(const std::string& text, std::vector<std::string>& lines) {
  if (text.find_first_not_of(' ') != std::string::npos) lines.push_back(text);
}

void append_text_lines(const std::string& text, std::vector<std::string>& lines) {
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    append_if_not_blank(text.substr(start, end - start), lines);
    start = end + 1;
  }
}

/// Lines of WikiText, then contexts and questions of SQuAD, chosen as in the generator. Nothing if the shared data are
/// absent.
std::optional<std::vector<std::string>> read_lines() {
  std::vector<std::string> lines;
  for (const char* name : {"wikitext-raw/wiki.valid.raw.gz", "wikitext-raw/wiki.test.raw.gz"}) {
    const auto path = testing::shared_data(name);
    if (!path) return std::nullopt;
    append_text_lines(data::read_text(*path), lines);
  }
  const auto squad = testing::shared_data("squad/dev-v1.1.json.gz");
  if (!squad) return std::nullopt;
  const Json document = parse_json(formats::read_plain_or_gzip(*squad, 64 << 20), "squad");
  std::vector<std::string> questions;
  for (const Json& article : document.at("data")) {
    for (const Json& paragraph : article.at("paragraphs")) {
      append_if_not_blank(paragraph.at("context").get<std::string>(), lines);
      for (const Json& question : paragraph.at("qas"))
        append_if_not_blank(question.at("question").get<std::string>(), questions);
    }
  }
  lines.insert(lines.end(), questions.begin(), questions.end());
  lines.resize(golden().at("lines").get<std::size_t>());
  return lines;
}

const std::optional<std::vector<std::string>>& shared_lines() {
  static const auto lines = read_lines();
  return lines;
}

std::vector<std::uint32_t> checksums(const std::string& name) {
  const std::string bytes = testing::bytes_of(GAINLENS_SOURCE_DIR "/tests/tokenizers/golden/lines-" + name + ".crc32");
  std::vector<std::uint32_t> values(bytes.size() / sizeof(std::uint32_t));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(std::uint32_t));
  return values;
}

std::string_view bytes_of(const Ids& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(TokenId)};
}

std::uint32_t crc32_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

void expect_plain(const Tokenizer& tokenizer, const Json& expected) {
  const Json& plain = golden().at("plain");
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(plain[i].get<std::string>()), expected.at(i).get<Ids>()) << plain[i].dump();
  }
}

/// Tests the validation text in one piece, as a sweep encodes it.
void expect_whole_text(const Tokenizer& tokenizer, const Json& expected) {
  const std::string text = data::read_text(*testing::shared_data("wikitext-raw/wiki.valid.raw.gz"));
  const Ids ids = tokenizer.encode(text);
  EXPECT_TRUE(encode_in_parts(tokenizer, text, "text") == ids);
  EXPECT_EQ(ids.size(), expected.at("count").get<std::size_t>());
  EXPECT_EQ(sha256_hex(bytes_of(ids)), expected.at("sha256").get<std::string>());
}

void expect_lines(const Tokenizer& tokenizer, const std::string& name) {
  const Json& expected = golden().at("tokenizers").at(name);
  expect_plain(tokenizer, expected.at("plain"));
  if (!shared_lines()) GTEST_SKIP() << "SKIPPED: no wikitext-raw and squad in the shared data";
  const std::vector<std::uint32_t> lines = checksums(name);
  ASSERT_EQ(lines.size(), shared_lines()->size());
  std::size_t count = 0, wrong = 0;
  Sha256 whole;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Ids ids = tokenizer.encode((*shared_lines())[i]);
    count += ids.size();
    whole.update(bytes_of(ids));
    const bool equal = crc32_of(bytes_of(ids)) == lines[i];
    if (!equal && ++wrong <= 5) ADD_FAILURE() << name << ", line " << i << ": " << (*shared_lines())[i];
  }
  EXPECT_EQ(wrong, 0u) << "of " << lines.size() << " lines";
  EXPECT_EQ(count, expected.at("lines").at("count").get<std::size_t>());
  EXPECT_EQ(whole.hex(), expected.at("lines").at("sha256").get<std::string>());
  expect_whole_text(tokenizer, expected.at("valid"));
}

TEST(LinesGolden, LinesAreThoseOfTheGenerator) {
  if (!shared_lines()) GTEST_SKIP() << "SKIPPED: no wikitext-raw and squad in the shared data";
  ASSERT_EQ(shared_lines()->size(), 10000u);
  Sha256 hash;
  for (std::size_t i = 0; i < shared_lines()->size(); ++i) hash.update((i == 0 ? "" : "\n") + (*shared_lines())[i]);
  EXPECT_EQ(hash.hex(), golden().at("lines_sha256").get<std::string>());
}

TEST(LinesGolden, GemmaFromGguf) {
  const auto model = testing::gemma_model();
  if (!model) GTEST_SKIP() << testing::gemma_is_missing;
  const auto tokenizer = open_tokenizer(*model);
  EXPECT_EQ(tokenizer->description(), "SentencePiece, 262144 tokens (GGUF)");
  EXPECT_EQ(tokenizer->vocabulary_size(), 262144);
  EXPECT_EQ(tokenizer->bos_token(), 2);
  EXPECT_TRUE(tokenizer->adds_bos());
  expect_lines(*tokenizer, "gemma3");
}

TEST(LinesGolden, Gpt2) {
  const auto folder = testing::shared_data("tokenizers/gpt2");
  if (!folder) GTEST_SKIP() << "SKIPPED: no tokenizers/gpt2 in the shared data";
  expect_lines(*open_gpt2_bpe(*folder / "encoder.json.gz", *folder / "vocab.bpe.gz"), "gpt2");
}

TEST(LinesGolden, Gpt2FromGguf) {
  const auto folder = testing::shared_data("tokenizers/gpt2");
  if (!folder) GTEST_SKIP() << "SKIPPED: no tokenizers/gpt2 in the shared data";
  const auto tokenizer =
      testing::open_tokenizer(testing::gpt2_gguf(*folder / "encoder.json.gz", *folder / "vocab.bpe.gz"));
  EXPECT_EQ(tokenizer->description(), "byte-level BPE, 50257 tokens (GGUF, gpt-2)");
  EXPECT_EQ(tokenizer->bos_token(), 50256);
  EXPECT_FALSE(tokenizer->adds_bos());
  expect_lines(*tokenizer, "gpt2");
}

TEST(LinesGolden, Llama2) {
  const auto model = testing::shared_data("tokenizers/llama2/tokenizer.model");
  if (!model) GTEST_SKIP() << "SKIPPED: no tokenizers/llama2 in the shared data";
  expect_lines(*open_sentencepiece(*model), "llama2");
}

TEST(LinesGolden, Llama2FromGguf) {
  const auto model = testing::shared_data("tokenizers/llama2/tokenizer.model");
  if (!model) GTEST_SKIP() << "SKIPPED: no tokenizers/llama2 in the shared data";
  const auto tokenizer = testing::open_tokenizer(testing::llama_gguf(*model));
  EXPECT_EQ(tokenizer->description(), "SentencePiece, 32000 tokens (GGUF)");
  EXPECT_EQ(tokenizer->bos_token(), 1);
  EXPECT_TRUE(tokenizer->adds_bos());
  expect_lines(*tokenizer, "llama2");
}

}  // namespace lines_golden_test
}  // namespace gainlens::tokenizers
