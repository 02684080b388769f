// Texts of tokens, as reports show them.
#include "core/utf8.h"
#include "support/text_file.h"
#include "tokenizers/gguf_vocabularies.h"
#include "tokenizers/readable.h"
#include "tokenizers/tokenizer.h"

#include <gtest/gtest.h>

namespace gainlens::tokenizers {
namespace token_text_test {

/// The texts of the tokens of a text, each followed by '|'.
std::string texts(const Tokenizer& tokenizer, std::string_view text) {
  std::string joined;
  for (const TokenId id : tokenizer.encode(text)) joined += tokenizer.token_text(id) + "|";
  return joined;
}

void expect_every_text_is_sound(const Tokenizer& tokenizer) {
  std::int64_t empty = 0;
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    const std::string text = tokenizer.token_text(id);
    ASSERT_FALSE(first_invalid_utf8(text)) << id;
    ASSERT_EQ(text.find('\0'), std::string::npos) << id;
    empty += text.empty() ? 1 : 0;
  }
  EXPECT_EQ(empty, 0);
  EXPECT_EQ(tokenizer.token_text(-1), "");
  EXPECT_EQ(tokenizer.token_text(static_cast<TokenId>(tokenizer.vocabulary_size())), "");
}

TEST(Readable, BytesThatAreNoUtf8AreWrittenOut) {
  EXPECT_EQ(readable("a\xE2\x96z"), "a<0xE2><0x96>z");
  EXPECT_EQ(readable("\u2581\n\x1b"), "\u2581\n\x1b");
  EXPECT_EQ(readable(std::string_view("\0b", 2)), "<0x00>b");
  EXPECT_EQ(readable(""), "");
}

TEST(Readable, OnlyPiecesOfOneByteAreBytes) {
  EXPECT_EQ(byte_of_piece("<0x0A>"), "\n");
  for (const char* piece : {"<0x0A", "<0x0G>", "<0xA>", "<0x-A>", "a<0x0A>", "<0x0A> "}) {
    EXPECT_FALSE(byte_of_piece(piece)) << piece;
  }
}

TEST(TokenText, SentencePiece) {
  const auto model = testing::shared_data("tokenizers/llama2/tokenizer.model");
  if (!model) GTEST_SKIP() << "SKIPPED: no tokenizers/llama2 in the shared data";
  const auto own = open_sentencepiece(*model), inside = testing::open_tokenizer(testing::llama_gguf(*model));
  for (const auto* tokenizer : {own.get(), inside.get()}) {
    EXPECT_EQ(texts(*tokenizer, "the cat,\n"), "\u2581the|\u2581cat|,|\n|");
    EXPECT_EQ(texts(*tokenizer, "\U0001F9FF"), "\u2581|<0xF0>|<0x9F>|<0xA7>|<0xBF>|");
    EXPECT_EQ(tokenizer->token_text(1), "<s>");
    expect_every_text_is_sound(*tokenizer);
  }
}

TEST(Decode, PiecesBecomeText) {
  const auto model = testing::shared_data("tokenizers/llama2/tokenizer.model");
  if (!model) GTEST_SKIP() << "SKIPPED: no tokenizers/llama2 in the shared data";
  const auto tokenizer = open_sentencepiece(*model);
  const std::string text = "the  cat,\n\U0001F9FF sat";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), " " + text);  // the library puts a space in front
  EXPECT_EQ(tokenizer->decode({}), "");
  const std::vector<TokenId> controls = {1, 2, -1, 1 << 20};  // <s>, </s>, and no tokens at all
  EXPECT_EQ(tokenizer->decode(controls), "");
  const std::vector<TokenId> ids = tokenizer->encode("\U0001F9FF");
  EXPECT_EQ(tokenizer->decode(std::span(ids).first(3)), " <0xF0><0x9F>");  // a space and half of a character
}

TEST(Decode, BytesOfSeveralTokensAreOneCharacter) {
  const auto folder = testing::shared_data("tokenizers/gpt2");
  if (!folder) GTEST_SKIP() << "SKIPPED: no tokenizers/gpt2 in the shared data";
  const auto tokenizer = open_gpt2_bpe(*folder / "encoder.json.gz", *folder / "vocab.bpe.gz");
  for (const std::string text : {"the cat,\n<|endoftext|> caf\u00e9", "\u2581 a", "\U0001F9FF"})
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(TokenText, ByteLevel) {
  const auto folder = testing::shared_data("tokenizers/gpt2");
  if (!folder) GTEST_SKIP() << "SKIPPED: no tokenizers/gpt2 in the shared data";
  const auto own = open_gpt2_bpe(*folder / "encoder.json.gz", *folder / "vocab.bpe.gz");
  const auto inside =
      testing::open_tokenizer(testing::gpt2_gguf(*folder / "encoder.json.gz", *folder / "vocab.bpe.gz"));
  for (const auto* tokenizer : {own.get(), inside.get()}) {
    EXPECT_EQ(texts(*tokenizer, "the cat,\n<|endoftext|>"), "the| cat|,|\n|<|endoftext|>|");
    EXPECT_EQ(texts(*tokenizer, "\u2581"), "<0xE2><0x96>|<0x81>|");
    EXPECT_EQ(texts(*tokenizer, "caf\u00e9"), "c|af|\u00e9|");
    expect_every_text_is_sound(*tokenizer);
  }
}

TEST(TokenText, TokenizerJson) {
  const testing::TemporaryFolder folder;
  const auto opened = [&](const char* json) {
    return open_tokenizer_json(testing::write_file(folder.path() / "tokenizer.json", json));
  };
  const auto bytes = opened(R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
      "added_tokens": [{"id": 3, "content": "\u010ax", "special": true}],
      "model": {"type": "BPE", "vocab": {"\u0120a": 0, "\u010a": 1, "\u00e2": 5}, "merges": []}})");
  EXPECT_EQ(bytes->token_text(0), " a");
  EXPECT_EQ(bytes->token_text(1), "\n");
  EXPECT_EQ(bytes->token_text(3), "\u010ax");  // added tokens stand in the text as they are
  EXPECT_EQ(bytes->token_text(5), "<0xE2>");
  EXPECT_EQ(bytes->token_text(4), "");  // an id between those of the vocabulary
  const auto fallback = opened(R"({"model": {"type": "BPE", "byte_fallback": true,
      "vocab": {"\u2581a": 0, "<0x0A>": 1, "<0xE2>": 2}, "merges": []}})");
  EXPECT_EQ(fallback->token_text(0), "\u2581a");
  EXPECT_EQ(fallback->token_text(1), "\n");
  EXPECT_EQ(fallback->token_text(2), "<0xE2>");
  const auto plain = opened(R"({"model": {"type": "BPE", "vocab": {"<0x0A>": 0, "\u010a": 1}, "merges": []}})");
  EXPECT_EQ(plain->token_text(0), "<0x0A>");
  EXPECT_EQ(plain->token_text(1), "\u010a");
  EXPECT_EQ(bytes->token_bytes(5), "\xE2");
  EXPECT_EQ(bytes->token_bytes(3), "\u010ax");
  EXPECT_EQ(fallback->token_bytes(0), " a");
  EXPECT_EQ(fallback->token_bytes(2), "\xE2");
  EXPECT_EQ(fallback->token_bytes(9), "");
  EXPECT_EQ(plain->token_bytes(0), "<0x0A>");
}

}  // namespace token_text_test
}  // namespace gainlens::tokenizers
