// The parts of published tokenizer.json files that cut a text into words: golden/gguf_pre.json, made by
// tests/golden/make_gguf_pre_golden.py. Its merges reach across the ends of words, so every cut shows in the ids.
#include "core/error.h"
#include "core/json.h"
#include "core/sha256.h"
#include "support/text_file.h"
#include "tokenizers/code_points.h"
#include "tokenizers/pre_tokenizer.h"
#include "tokenizers/tokenizer.h"
#include "tokenizers/unicode_scripts.h"

#include <gtest/gtest.h>

namespace gainlens::tokenizers {
namespace pre_tokenizer_golden_test {

using Ids = std::vector<TokenId>;
using Pieces = std::vector<std::string>;

const Json& golden() {
  static const Json document = read_json_file(GAINLENS_SOURCE_DIR "/tests/tokenizers/golden/gguf_pre.json");
  return document;
}

Json document_of(const Json& item) {
  Json document = item.at("tokenizer");
  Json vocabulary = Json::object();
  for (const Json& token : golden().at("tokens")) {
    const auto id = vocabulary.size();
    vocabulary[token.get<std::string>()] = id;
  }
  document["model"] = {{"type", "BPE"},
                       {"vocab", vocabulary},
                       {"merges", golden().at("merges")},
                       {"ignore_merges", item.at("ignore_merges")}};
  return document;
}

TEST(PreTokenizerGolden, TokenizerJsonOfEachModel) {
  const testing::TemporaryFolder folder;
  int cases = 0;
  for (const char* list : {"cases", "others"}) {
    for (const Json& item : golden().at(list)) {
      const auto path = testing::write_file(folder.path() / "tokenizer.json", document_of(item).dump());
      const auto tokenizer = open_tokenizer_json(path);
      for (std::size_t i = 0; i < golden().at("texts").size(); ++i) {
        const Json& text = golden().at("texts").at(i);
        EXPECT_EQ(tokenizer->encode(text.get<std::string>()), item.at("ids").at(i).get<Ids>())
            << item.at("name") << ": " << text.dump();
      }
      ++cases;
    }
  }
  EXPECT_GE(cases, 28);
}

Pieces pieces_of(std::string_view text) {
  Pieces pieces;
  for (const Span& span : script_pieces(text)) pieces.emplace_back(text.substr(span.begin, span.end - span.begin));
  return pieces;
}

TEST(UnicodeScripts, EveryCharacterAsInTheReference) {
  std::string text;
  for (char32_t code_point = 0; code_point < 0x110000; ++code_point) {
    if (code_point < 0xD800 || code_point >= 0xE000) append_utf8(text, code_point);
  }
  const Pieces pieces = pieces_of(text);
  std::string lengths;
  for (const std::string& piece : pieces) lengths += (lengths.empty() ? "" : ",") + std::to_string(piece.size());
  EXPECT_EQ(pieces.size(), golden().at("script_pieces").at("count").get<std::size_t>());
  EXPECT_EQ(sha256_hex(lengths), golden().at("script_pieces").at("sha256").get<std::string>());
}

TEST(UnicodeScripts, ByHand) {
  EXPECT_EQ(pieces_of("ab Ж я"), (Pieces{"ab ", "Ж я"}));
  EXPECT_EQ(pieces_of("ひカ漢ー。x"), (Pieces{"ひカ漢ー", "。", "x"}));
  EXPECT_EQ(pieces_of("a1b"), (Pieces{"a", "1", "b"}));                // digits are Common, a script of its own
  EXPECT_EQ(pieces_of("  a"), (Pieces{"a"}));                          // the reference drops spaces at the start
  EXPECT_EQ(pieces_of("a\u0860Ж"), (Pieces{"a\u0860", "Ж"}));          // Syriac of Unicode 10
  EXPECT_EQ(pieces_of("\u0561\u0589"), (Pieces{"\u0561", "\u0589"}));  // Armenian full stop: Common in Unicode 9
  EXPECT_EQ(pieces_of(""), Pieces{});
  EXPECT_EQ(pieces_of("   "), Pieces{});
}

TEST(UnicodeScripts, TakesNoOptions) {
  const Json node{{"type", "UnicodeScripts"}, {"scripts", "Latin"}};
  EXPECT_THROW(make_pre_tokenizer(JsonNode(node, "file: pre_tokenizer")), InvalidArgument);
}

}  // namespace pre_tokenizer_golden_test
}  // namespace gainlens::tokenizers
