// The ids of a text that is encoded in parts are those of the whole text, for every kind of tokenizer and every place
// where a part may end. The tokenizers are those of golden/tokenizers.json and golden/gguf_pre.json, and SentencePiece.
#include "tokenizers/text_encoder.h"

#include "core/error.h"
#include "core/json.h"
#include "core/random.h"
#include "data/text.h"
#include "support/text_file.h"
#include "tokenizers/code_points.h"
#include "tokenizers/gguf_vocabularies.h"
#include "tokenizers/sentencepiece_model.h"
#include "tokenizers/sentencepiece_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gainlens::tokenizers {
namespace text_encoder_test {

using Ids = std::vector<TokenId>;

Json golden(const std::string& name) {
  return read_json_file(std::string(GAINLENS_SOURCE_DIR "/tests/tokenizers/golden/") + name);
}

std::size_t below(Random& random, std::size_t end) {
  return static_cast<std::size_t>(random.below(end));
}

/// Some texts of `from`, in any order, as one.
std::string mixed(const std::vector<std::string>& from, Random& random, std::size_t count) {
  static const std::vector<std::string> between = {"", " ", "\n", "  \n\n", "\t", "a b", "0", "\u2581", "   "};
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += from[below(random, from.size())] + between[below(random, between.size())];
  return text;
}

/// Encodes a text in parts, which are given in pieces of any size.
Ids in_parts(const Tokenizer& tokenizer, std::string_view text, std::size_t part, Random& random) {
  TextEncoder encoder(tokenizer, {.where = "text", .enough = {}, .part = part});
  while (!text.empty()) {
    std::size_t length = std::min(text.size(), 1 + below(random, 2 * part));
    while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) ++length;
    encoder.add(text.substr(0, length));
    text.remove_prefix(length);
  }
  EXPECT_TRUE(encoder.finish());
  return encoder.take();
}

/// How many of the starts of a text can be cut. Each cut must give the ids of the whole, whatever follows.
std::size_t expect_cuts(const Tokenizer& tokenizer, const std::string& text, Random& random, const std::string& name) {
  std::size_t cuts = 0;
  std::string start;
  for (std::size_t position = 0; position < text.size();) {
    const std::size_t begin = position;
    next_code_point(text, position);
    start.append(text, begin, position - begin);
    if (below(random, 4) != 0) continue;
    const std::size_t cut = tokenizer.last_cut(start, 0);
    EXPECT_LT(cut, start.size());
    if (cut == 0) continue;
    ++cuts;
    // What follows may be anything: the rest of the text, or the start of it again.
    const std::string whole = below(random, 2) == 0 ? text : start + text.substr(0, below(random, 3) * 4);
    if (first_invalid_utf8(whole)) continue;
    Ids ids = tokenizer.encode(start.substr(0, cut));
    if (!tokenizer.continues_at_cuts()) {
      const Ids all = tokenizer.encode(whole);
      EXPECT_TRUE(ids.size() <= all.size() && std::equal(ids.begin(), ids.end(), all.begin())) << name;
      continue;
    }
    const Ids rest = tokenizer.encode_from(whole, cut);
    ids.insert(ids.end(), rest.begin(), rest.end());
    const bool equal = ids == tokenizer.encode(whole);
    EXPECT_TRUE(equal) << name << ": cut at " << cut << " of " << Json(whole).dump();
    if (!equal) break;
  }
  return cuts;
}

/// @return how many cuts there were
std::size_t expect_same(const Tokenizer& tokenizer, const std::vector<std::string>& texts, const std::string& name) {
  Random random(17);
  std::size_t cuts = 0;
  for (int round = 0; round < 2; ++round) {
    const std::string text = mixed(texts, random, 30);
    cuts += expect_cuts(tokenizer, text.substr(0, text.find('\n', 300)), random, name);
    const Ids whole = tokenizer.encode(text);
    for (const std::size_t part : {7u, 300u})
      EXPECT_TRUE(in_parts(tokenizer, text, part, random) == whole) << name << ", parts of " << part;
  }
  return cuts;
}

std::vector<std::string> texts_of(const Json& list) {
  return list.get<std::vector<std::string>>();
}

TEST(TextEncoder, EveryPartOfTokenizerJson) {
  const testing::TemporaryFolder folder;
  const Json document = golden("tokenizers.json");
  // These look at the start or the end of the text, or match nothing.
  const std::vector<std::string> without = {"strip", "strip left", "empty matches", "lines"};
  for (const Json& item : document.at("cases")) {
    const std::string name = item.at("name");
    Json file = item.at("tokenizer");
    file["model"] = document.at("models").at(item.at("model").get<std::string>());
    file["model"].update(item.at("model_changes"));
    const auto path = testing::write_file(folder.path() / "tokenizer.json", file.dump());
    const std::size_t cuts = expect_same(*open_tokenizer_json(path), texts_of(document.at("sentences")), name);
    EXPECT_TRUE(cuts > 0 || std::find(without.begin(), without.end(), name) != without.end()) << name;
  }
}

TEST(TextEncoder, TokenizerJsonOfEachModel) {
  const testing::TemporaryFolder folder;
  const Json document = golden("gguf_pre.json");
  Json vocabulary = Json::object();
  for (const Json& token : document.at("tokens")) {
    const auto id = vocabulary.size();
    vocabulary[token.get<std::string>()] = id;
  }
  for (const char* list : {"cases", "others"}) {
    for (const Json& item : document.at(list)) {
      const std::string name = item.at("name").dump();
      Json file = item.at("tokenizer");
      file["model"] = {{"type", "BPE"},
                       {"vocab", vocabulary},
                       {"merges", document.at("merges")},
                       {"ignore_merges", item.at("ignore_merges")}};
      const auto path = testing::write_file(folder.path() / "tokenizer.json", file.dump());
      const std::size_t cuts = expect_same(*open_tokenizer_json(path), texts_of(document.at("texts")), name);
      // "sets" has the sign ^ within a set, where it could be an anchor.
      EXPECT_EQ(cuts > 0, name != "\"sets\"") << name;
    }
  }
}

/// Pieces that reach across spaces and line ends, and one that is always found.
SentencePieceModel pieces(bool byte_fallback) {
  SentencePieceModel model;
  model.byte_fallback = byte_fallback;
  model.pieces = {{"<unk>", 0, PieceType::unknown}, {"<s>", 0, PieceType::control}};
  model.bos = 1;
  const auto add = [&](const std::string& text, PieceType type = PieceType::normal) {
    model.pieces.push_back({text, -static_cast<float>(model.pieces.size()), type});
  };
  for (const char* piece :
       {"ab", "\u2581a", "\u2581ab", "b\n", "\n\u2581", "\u2581\u2581", "aa", "\u00e4b", "b\u2581c"})
    add(piece);
  add("zab", PieceType::user_defined);
  for (const char* piece : {"a", "b", "c", "z", "\u2581", "\u00e4", "\n", "o", "n"}) add(piece);
  if (byte_fallback) {
    for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), PieceType::byte);
  }
  return model;
}

TEST(TextEncoder, SentencePiece) {
  const std::vector<std::string> texts = {
      "ab aab", "a  b\n c", "zab z ab",   "\u00e4b\u00e4 b c",      "\u6211\u4eec\u6211",
      "b\n\n",  "aaaa aab", "on no noon", std::string("\0\0\0", 3), "xyz"};
  for (const bool byte_fallback : {false, true}) {
    for (const bool prefix : {false, true}) {
      SentencePieceModel model = pieces(byte_fallback);
      model.add_dummy_prefix = prefix;
      const auto same = [&](const std::string& name) {
        const SentencePieceSettings settings{.where = "model", .source = "test", .bos_piece = {}};
        return expect_same(*make_sentencepiece(serialise(model), settings), texts, name);
      };
      EXPECT_GT(same(byte_fallback ? "byte fallback" : "unknown"), 0u);
      model.remove_extra_whitespaces = true;  // the whole text decides which spaces go
      EXPECT_EQ(same("spaces removed"), 0u);
    }
  }
}

TEST(TextEncoder, Llama2AndGpt2) {
  const auto llama = testing::shared_data("tokenizers/llama2"), gpt2 = testing::shared_data("tokenizers/gpt2");
  const auto text_file = testing::shared_data("wikitext-raw/wiki.valid.raw.gz");
  if (!llama || !gpt2 || !text_file) GTEST_SKIP() << "SKIPPED: no tokenizers and wikitext-raw in the shared data";
  const std::string text = data::read_text(*text_file).substr(0, 100'000);
  const std::string valid = text.substr(0, text.rfind('\n'));
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < 2'000;) {
    const std::size_t end = valid.find('\n', begin);
    lines.push_back(valid.substr(begin, end - begin));
    begin = end + 1;
  }
  const auto sentencepiece = open_tokenizer(*llama);
  const auto byte_level = open_gpt2_bpe(*gpt2 / "encoder.json.gz", *gpt2 / "vocab.bpe.gz");
  for (const Tokenizer* tokenizer : {sentencepiece.get(), byte_level.get()}) {
    Random random(3);
    const Ids whole = tokenizer->encode(valid);
    EXPECT_TRUE(in_parts(*tokenizer, valid, 1000, random) == whole);
    EXPECT_TRUE(encode_in_parts(*tokenizer, valid, "text") == whole);
    EXPECT_GT(expect_same(*tokenizer, lines, tokenizer->description()), 0u);
  }
}

TEST(TextEncoder, TakesAsMuchTextAsIdsAreNeeded) {
  const auto tokenizer = open_tokenizer(GAINLENS_SOURCE_DIR "/data/demo/gated");
  const std::string text = data::read_text(GAINLENS_SOURCE_DIR "/data/demo/text.txt");
  const Ids whole = tokenizer->encode(text);
  for (const std::size_t enough : {std::size_t{1}, std::size_t{100}, whole.size()}) {
    TextEncoder encoder(*tokenizer, {.where = "text", .enough = enough, .part = 512});
    encoder.add(text);
    EXPECT_EQ(encoder.finish(), enough == whole.size());
    const Ids ids = encoder.take();
    ASSERT_GE(ids.size(), enough);
    EXPECT_LT(ids.size(), enough + 1024);
    EXPECT_TRUE(std::equal(ids.begin(), ids.end(), whole.begin()));
  }
}

}  // namespace text_encoder_test
}  // namespace gainlens::tokenizers
