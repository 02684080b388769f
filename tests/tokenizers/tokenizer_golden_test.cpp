// Ids of the field's standard tokenizers: golden/tokenizers.json, made by tests/golden/make_tokenizer_golden.py.
#include "core/json.h"
#include "core/sha256.h"
#include "data/text.h"
#include "support/text_file.h"
#include "tokenizers/tokenizer.h"

#include <gtest/gtest.h>

#include <sstream>

namespace gainlens::tokenizers {
namespace tokenizer_golden_test {

using Ids = std::vector<TokenId>;

const Json& golden() {
  static const Json document = read_json_file(GAINLENS_SOURCE_DIR "/tests/tokenizers/golden/tokenizers.json");
  return document;
}

void expect_sentences(const Tokenizer& tokenizer, const Json& expected, const std::string& name) {
  const Json& sentences = golden().at("sentences");
  ASSERT_EQ(expected.size(), sentences.size());
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(sentences[i].get<std::string>()), expected[i].get<Ids>())
        << name << ": " << sentences[i].dump();
  }
}

TEST(TokenizerGolden, EachPartOfTokenizerJson) {
  const testing::TemporaryFolder folder;
  ASSERT_GE(golden().at("cases").size(), 40u);
  for (const Json& item : golden().at("cases")) {
    Json document = item.at("tokenizer");
    document["model"] = golden().at("models").at(item.at("model").get<std::string>());
    document["model"].update(item.at("model_changes"));
    const auto path = testing::write_file(folder.path() / "tokenizer.json", document.dump());
    expect_sentences(*open_tokenizer_json(path), item.at("ids"), item.at("name"));
  }
}

struct Stream {
  std::size_t count = 0;
  Sha256 hash;

  void add(const Ids& ids) {
    for (const TokenId id : ids) {
      const char bytes[] = {static_cast<char>(id), static_cast<char>(id >> 8), static_cast<char>(id >> 16),
                            static_cast<char>(id >> 24)};
      hash.update({bytes, sizeof bytes});
    }
    count += ids.size();
  }
};

/// Tests the sentences, the first 2,000 lines of WikiText's validation text one by one, and the whole validation text.
void expect_shared(const Tokenizer& tokenizer, const std::string& name) {
  const Json& expected = golden().at("shared").at(name);
  expect_sentences(tokenizer, expected.at("sentences"), name);
  const auto path = testing::shared_data("wikitext-raw/wiki.valid.raw.gz");
  if (!path) GTEST_SKIP() << "SKIPPED: no wikitext-raw/wiki.valid.raw.gz in the shared data";
  const std::string text = data::read_text(*path);

  Stream whole;
  whole.add(tokenizer.encode(text));
  EXPECT_EQ(whole.count, expected.at("whole").at("count").get<std::size_t>());
  EXPECT_EQ(whole.hash.hex(), expected.at("whole").at("sha256").get<std::string>());

  Stream by_line;
  std::istringstream lines(text);
  int taken = 0;
  for (std::string line; taken < 2000 && std::getline(lines, line);) {
    if (line.empty()) continue;
    by_line.add(tokenizer.encode(line));
    ++taken;
  }
  EXPECT_EQ(by_line.count, expected.at("lines").at("count").get<std::size_t>());
  EXPECT_EQ(by_line.hash.hex(), expected.at("lines").at("sha256").get<std::string>());
}

TEST(TokenizerGolden, Tinystories) {
  const auto folder = testing::shared_data("models/tinystories-656K");
  if (!folder) GTEST_SKIP() << "SKIPPED: no models/tinystories-656K in the shared data";
  const auto tokenizer = open_tokenizer(*folder);
  EXPECT_EQ(tokenizer->vocabulary_size(), 2048);
  EXPECT_EQ(tokenizer->bos_token(), 1);
  EXPECT_TRUE(tokenizer->adds_bos());
  expect_shared(*tokenizer, "tinystories");
}

TEST(TokenizerGolden, Gpt2) {
  const auto folder = testing::shared_data("tokenizers/gpt2");
  if (!folder) GTEST_SKIP() << "SKIPPED: no tokenizers/gpt2 in the shared data";
  const auto tokenizer = open_gpt2_bpe(*folder / "encoder.json.gz", *folder / "vocab.bpe.gz");
  EXPECT_EQ(tokenizer->vocabulary_size(), 50257);
  EXPECT_EQ(tokenizer->bos_token(), 50256);
  EXPECT_FALSE(tokenizer->adds_bos());
  EXPECT_EQ(tokenizer->encode("a<|endoftext|>b"), (Ids{64, 50256, 65}));
  expect_shared(*tokenizer, "gpt2");
}

TEST(TokenizerGolden, Llama2) {
  const auto folder = testing::shared_data("tokenizers/llama2");
  if (!folder) GTEST_SKIP() << "SKIPPED: no tokenizers/llama2 in the shared data";
  const auto tokenizer = open_tokenizer(*folder);
  EXPECT_EQ(tokenizer->vocabulary_size(), 32000);
  EXPECT_EQ(tokenizer->bos_token(), 1);
  EXPECT_TRUE(tokenizer->adds_bos());
  expect_shared(*tokenizer, "llama2");
}

}  // namespace tokenizer_golden_test
}  // namespace gainlens::tokenizers
