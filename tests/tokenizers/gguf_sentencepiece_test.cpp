// Vocabularies of type "llama" in GGUF files: small ones made by hand, and the serialised model made from them.
#include "core/error.h"
#include "support/gemma.h"
#include "support/text_file.h"
#include "tokenizers/gguf_vocabularies.h"
#include "tokenizers/sentencepiece_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace gainlens::tokenizers {
namespace gguf_sentencepiece_test {

using ::testing::AllOf;
using testing::byte_token;
using testing::control_token;
using testing::GgufBytes;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;
using testing::unknown_token;
using testing::user_token;
using Ids = std::vector<TokenId>;

struct Pieces {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "\u2581", "a", "b", "ab", "\u2581a", "  "};
  std::vector<float> scores = {0, 0, 0, -9, -9, -9, -1, -2, 0};
  std::vector<std::int32_t> types = {unknown_token, control_token, control_token, 1, 1, 1, 1, 1, user_token};

  GgufBytes gguf() const { return testing::llama_gguf(tokens, scores, types); }
  void add(const std::string& token, std::int32_t type) {
    tokens.push_back(token);
    scores.push_back(-99);
    types.push_back(type);
  }
  void add_bytes() {
    for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), byte_token);
  }
};

void expect_error(const GgufBytes& gguf, const std::string& part) {
  EXPECT_THAT([&] { testing::open_tokenizer(gguf); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("model.gguf"), HasSubstr(part), HasSubstr("--tokens"), Not(HasSubstr("\n")))));
}

TEST(GgufSentencePieceTest, AVocabularyThatLosesTextIsToBlame) {
  Pieces pieces;
  pieces.tokens[2] = "\u2581a";  // a control piece that pieces of text merge to
  const auto tokenizer = testing::open_tokenizer(pieces.gguf());
  EXPECT_THAT([&] { tokenizer->encode("ab  <s>12 a"); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("cannot encode a text with this vocabulary"),
                                                   HasSubstr("fetch the file again"), Not(HasSubstr("\n")))));
}

TEST(SentencePieceModelTest, BytesByHand) {
  SentencePieceModel model;
  model.pieces = {{"u", 0, PieceType::unknown}, {"a", -1.5f, PieceType::normal}};
  model.bos = 1;
  const std::string piece0 = {"\x0A\x0A\x0A\x01u\x15\0\0\0\0\x18\x02",
                              12};  // field 1, 10 bytes: text "u", score 0, type 2
  const std::string piece1 = {
      "\x0A\x0A\x0A\x01"  //
      "a\x15\0\0\xC0\xBF\x18\x01",
      12};  // score -1.5 is 0xBFC00000
  const std::string minus_one = "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01";
  std::string trainer = {"\x18\x02\x20\x02\x98\x02\0", 7};  // BPE, 2 pieces, field 35: no byte fallback
  trainer += std::string{"\xC0\x02\0\xEA\x02\x01u", 7};     // fields 40 and 45: unknown is 0, "u"
  trainer += std::string{
      "\xC8\x02\x01\xF2\x02\x01"
      "a",
      7};                                                      // fields 41 and 46: BOS is 1, "a"
  trainer += "\xD0\x02" + minus_one + "\xD8\x02" + minus_one;  // fields 42 and 43: neither EOS nor padding
  const std::string normalizer = {"\x0A\x08identity\x12\0\x18\x01\x20\0\x28\x01", 18};
  EXPECT_EQ(serialise(model),
            piece0 + piece1 + "\x12" + static_cast<char>(trainer.size()) + trainer + "\x1A\x12" + normalizer);
}

TEST(GgufSentencePiece, MergesByScore) {
  const auto tokenizer = testing::open_tokenizer(Pieces().gguf());
  EXPECT_EQ(tokenizer->encode("ab"),
            (Ids{3, 6}));  // a space is put before; "ab" (-1) comes before the space with "a" (-2)
  EXPECT_EQ(tokenizer->encode("aab"), (Ids{7, 6}));
  EXPECT_EQ(tokenizer->encode("z"), (Ids{3, 0}));
  EXPECT_EQ(tokenizer->vocabulary_size(), 9);
  EXPECT_EQ(tokenizer->description(), "SentencePiece, 9 tokens (GGUF)");
}

TEST(GgufSentencePiece, SpacePrefixIsAnOption) {
  EXPECT_EQ(testing::open_tokenizer(Pieces().gguf().add("tokenizer.ggml.add_space_prefix", false))->encode("ab"),
            (Ids{6}));
  EXPECT_EQ(testing::open_tokenizer(Pieces().gguf().add("tokenizer.ggml.add_space_prefix", true))->encode("ab"),
            (Ids{3, 6}));
}

TEST(GgufSentencePiece, SpacesAreKeptUnlessTheFileSaysOtherwise) {
  const GgufBytes kept = Pieces().gguf().add("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(testing::open_tokenizer(kept)->encode("b   b"), (Ids{5, 8, 3, 5}));
  const GgufBytes removed = GgufBytes(kept).add("tokenizer.ggml.remove_extra_whitespaces", true);
  EXPECT_EQ(testing::open_tokenizer(removed)->encode("b   b"), (Ids{5, 3, 5}));
}

TEST(GgufSentencePiece, PiecesOfPlainSpacesAreFound) {
  EXPECT_EQ(testing::open_tokenizer(Pieces().gguf().add("tokenizer.ggml.add_space_prefix", false))->encode("a  b"),
            (Ids{4, 8, 5}));
}

TEST(GgufSentencePiece, ControlPiecesAreNeverFoundUserDefinedOnesAlways) {
  Pieces pieces;
  for (const char* sign : {"<", "s", ">"}) pieces.add(sign, 1);  // 9, 10, 11
  EXPECT_EQ(testing::open_tokenizer(pieces.gguf())->encode("<s>"), (Ids{3, 9, 10, 11}));
  pieces.types[1] = user_token;
  EXPECT_EQ(testing::open_tokenizer(pieces.gguf())->encode("<s>"), (Ids{3, 1}));
}

TEST(GgufSentencePiece, UnknownCharactersBecomeBytesWhereThereAreBytes) {
  Pieces pieces;
  pieces.add_bytes();  // 9 to 264
  EXPECT_EQ(testing::open_tokenizer(pieces.gguf())->encode("a\u00e9"), (Ids{7, 9 + 0xC3, 9 + 0xA9}));
}

TEST(GgufSentencePiece, UnknownMayBeTypedControl) {
  Pieces pieces;
  pieces.types[0] = control_token;
  expect_error(pieces.gguf(), "no unknown token: neither tokenizer.ggml.unknown_token_id, nor a token of type 2");
  EXPECT_EQ(testing::open_tokenizer(pieces.gguf().add("tokenizer.ggml.unknown_token_id", 0u))->encode("z"),
            (Ids{3, 0}));
}

TEST(GgufSentencePiece, BosByTheFileElseFirst) {
  EXPECT_TRUE(testing::open_tokenizer(Pieces().gguf())->adds_bos());
  EXPECT_FALSE(testing::open_tokenizer(Pieces().gguf().add("tokenizer.ggml.add_bos_token", false))->adds_bos());
  EXPECT_EQ(testing::open_tokenizer(Pieces().gguf().add("tokenizer.ggml.bos_token_id", 1u))->bos_token(), 1);
  Pieces user;
  user.types[2] = user_token;
  EXPECT_EQ(testing::open_tokenizer(user.gguf().add("tokenizer.ggml.bos_token_id", 2u))->bos_token(), 2);
}

TEST(GgufSentencePiece, BrokenVocabulariesAreNamed) {
  Pieces pieces;
  pieces.scores.pop_back();
  expect_error(pieces.gguf(), "tokenizer.ggml.scores has 8 entries for 9 tokens");
  pieces = {};
  pieces.scores[5] = std::numeric_limits<float>::quiet_NaN();
  expect_error(pieces.gguf(), "tokenizer.ggml.scores");
  pieces = {};
  pieces.types.push_back(1);
  expect_error(pieces.gguf(), "tokenizer.ggml.token_type has 10 entries for 9 tokens");
  pieces = {};
  pieces.types[4] = 7;
  expect_error(pieces.gguf(), "token 4 has type 7; types are from 1 (normal) to 6 (byte)");
  pieces = {};
  pieces.types[4] = unknown_token;
  expect_error(pieces.gguf().add("tokenizer.ggml.unknown_token_id", 0u),
               "token 4 is of type unknown, but 0 is the unknown token");
  pieces = {};
  pieces.tokens[5] = "a";
  expect_error(pieces.gguf(), "a is already defined");
  pieces = {};
  pieces.tokens[5] = "\xE2\x96";
  expect_error(pieces.gguf(), "token 5 ('\\xe2\\x96') is not UTF-8 at its byte 0");
  pieces = {};
  pieces.add("<0x41>", byte_token);
  expect_error(pieces.gguf(), "256 byte pieces");
}

TEST(GgufSentencePiece, IdsOutOfRangeAreNamed) {
  for (const char* key : {"bos_token_id", "eos_token_id", "unknown_token_id", "padding_token_id"}) {
    const std::string name = std::string("tokenizer.ggml.") + key;
    expect_error(Pieces().gguf().add(name, 9u), name);
    expect_error(Pieces().gguf().add(name, -1), name);
    expect_error(Pieces().gguf().add(name, std::string("one")), name);
  }
}

TEST(GgufSentencePiece, WhatIsMissingOrNotSupportedIsNamed) {
  GgufBytes unscored;
  unscored.add("tokenizer.ggml.model", "llama").add_list("tokenizer.ggml.tokens", Pieces().tokens);
  unscored.add_list("tokenizer.ggml.token_type", Pieces().types);
  expect_error(unscored, "no tokenizer.ggml.scores");
  expect_error(Pieces().gguf().add_list("tokenizer.ggml.precompiled_charsmap", std::vector<std::uint8_t>{1}),
               "tokenizer.ggml.precompiled_charsmap");
  expect_error(GgufBytes().add("general.architecture", "llama"), "no tokenizer.ggml.model");
  expect_error(GgufBytes().add("tokenizer.ggml.model", "bert"), "'bert' is not supported; 'llama' and 'gpt2' are");
  expect_error(GgufBytes().add("tokenizer.ggml.model", "llama"), "no tokenizer.ggml.tokens");
  expect_error(GgufBytes().add("tokenizer.ggml.model", "llama").add_list("tokenizer.ggml.tokens", Pieces().tokens),
               "no tokenizer.ggml.token_type");
}

TEST(GgufSentencePiece, GemmaKeepsSpacesAndControlSigns) {
  const auto model = testing::gemma_model();
  if (!model) GTEST_SKIP() << testing::gemma_is_missing;
  const auto tokenizer = open_tokenizer(*model);
  EXPECT_EQ(tokenizer->encode("Hello world!"), (Ids{9259, 1902, 236888}));
  EXPECT_EQ(tokenizer->encode("  \n\n<table>"), (Ids{138, 108, 168}));
  EXPECT_GT(tokenizer->encode("<bos>").size(), 1u);
}

/// A field of protobuf that holds bytes.
std::string field(char number, const std::string& content) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  std::size_t size = content.size();
  for (; size >= 0x80; size >>= 7) bytes += static_cast<char>((size & 0x7F) | 0x80);
  return bytes + static_cast<char>(size) + content;
}

/// A map of characters for one key, "a": a double array of 768 units, and a text behind it.
struct CharacterMap {
  static constexpr std::uint32_t leaf = std::uint32_t{1} << 31, a = 0x61;
  std::vector<std::uint32_t> units = std::vector<std::uint32_t>(768);
  std::string texts = std::string("b\0", 2);

  CharacterMap() {
    units[0] = 256 << 10;                                 // its children stand from 256 on
    units[256 ^ a] = a | 1 << 8 | (256 ^ a ^ 512) << 10;  // has a leaf, at 512
    units[512] = leaf;                                    // the value 0
  }
  std::string bytes() const {
    std::string map;
    const auto add = [&](std::uint32_t unit) {
      for (int shift = 0; shift < 32; shift += 8) map += static_cast<char>(unit >> shift & 0xFF);
    };
    add(static_cast<std::uint32_t>(4 * units.size()));
    for (const std::uint32_t unit : units) add(unit);
    return map + texts;
  }
  /// In a model, as the map before (3) or after (5) the pieces.
  std::string fault(char normalizer = 3) const { return fault_of(field(normalizer, field(2, bytes()))); }
};

TEST(SentencePieceFaults, AMapOfCharactersStaysWithinItself) {
  const std::string damaged = "its map of characters is damaged";
  EXPECT_EQ(CharacterMap().fault(), "");
  CharacterMap map;
  map.units[0] = 768 << 10;  // children beyond the array
  EXPECT_EQ(map.fault(), damaged);
  EXPECT_EQ(map.fault(5), damaged);
  EXPECT_EQ(map.fault(4), "");  // another part of the model
  map = {};
  map.units[512] |= 2;  // a text behind the last one
  EXPECT_EQ(map.fault(), damaged);
  map = {};
  map.texts = "b";  // a text without an end
  EXPECT_EQ(map.fault(), damaged);
  map = {};
  map.units.resize(700);
  EXPECT_EQ(map.fault(), damaged);
  map = {};
  map.units[256 ^ CharacterMap::a] = CharacterMap::a | 1 << 8 | CharacterMap::a << 10;  // "a", "aa", "aaa" and so on
  map.units[256] = CharacterMap::leaf;
  EXPECT_EQ(map.fault(), damaged);
  EXPECT_EQ(fault_of(field(3, field(2, std::string("\0\0\0\0b\0", 6)))), damaged);
}

TEST(SentencePieceFaults, ManyPiecesThatBeginWithEachOther) {
  const auto fault = [](std::size_t count, const std::string& type) {
    std::string model;
    for (std::size_t size = 1; size <= count; ++size) model += field(1, field(1, std::string(size, 'a')) + type);
    return fault_of(model + field(1, field(1, "b") + type));
  };
  EXPECT_EQ(fault(64, "\x18\x04"), "");
  EXPECT_EQ(fault(65, "\x18\x04"), "more than 64 of its own pieces begin with each other");
  EXPECT_EQ(fault(65, "\x18\x01"), "");
  // The library passes over a text that is a number.
  EXPECT_EQ(fault(65, std::string("\x18\x04\x08\0", 4)), "more than 64 of its own pieces begin with each other");
}

TEST(SentencePieceFaults, WhatOtherReadersOfProtobufWouldSeeOtherwise) {
  EXPECT_EQ(fault_of("\x0b\x0c"), "it is no message of protobuf, or is truncated");  // a group
  EXPECT_EQ(fault_of("\x0a\x05z"), "it is no message of protobuf, or is truncated");
  EXPECT_EQ(fault_of(field(1, "\x0a\x05z")), "one of its parts is damaged");
  std::string many;
  for (std::size_t i = 0; i <= std::size_t{1} << 23; ++i) many += std::string("\x0a\0", 2);
  EXPECT_EQ(fault_of(many), "it has more than 8388608 fields");
}

TEST(SentencePieceFaults, AreRefusedBeforeTheLibrarySeesThem) {
  const testing::TemporaryFolder folder;
  SentencePieceModel model;
  model.pieces = {{"<unk>", 0, PieceType::unknown}, {"a", -1, PieceType::normal}};
  const auto path = folder.path() / "tokenizer.model";
  CharacterMap map;
  testing::write_file(path, serialise(model) + field(3, field(2, map.bytes())));
  EXPECT_NO_THROW(open_sentencepiece(path)->encode("a"));
  map.units[0] = 0x7FFFFE00;  // 2 GiB away
  testing::write_file(path, serialise(model) + field(3, field(2, map.bytes())));
  EXPECT_THAT(
      [&] { open_sentencepiece(path); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("tokenizer.model: not a SentencePiece model that can be used: "
                                                     "its map of characters is damaged; fetch the file again"),
                                           Not(HasSubstr("\n")))));
}

}  // namespace gguf_sentencepiece_test
}  // namespace gainlens::tokenizers
