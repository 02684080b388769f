// Vocabularies of type "gpt2" in GGUF files. Small ones are made by hand. The expected ids for each name of a
// pre-tokenizer come from golden/gguf_pre.json, made by tests/golden/make_gguf_pre_golden.py.
#include "core/error.h"
#include "core/json.h"
#include "tokenizers/byte_level.h"
#include "tokenizers/gguf_pre_tokenizers.h"
#include "tokenizers/gguf_vocabularies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::tokenizers {
namespace gguf_byte_level_bpe_test {

using ::testing::AllOf;
using testing::control_token;
using testing::GgufBytes;
using ::testing::HasSubstr;
using testing::normal_token;
using ::testing::Not;
using ::testing::ThrowsMessage;
using testing::user_token;
using Ids = std::vector<TokenId>;
using Texts = std::vector<std::string>;
using Types = std::vector<std::int32_t>;

/// a, b, ab, a space, digits 1 and 2, "12", "<s>" (control), "a b" (user-defined).
const Texts tokens = {"a", "b", "ab", "\u0120", "1", "2", "12", "<s>", "a b"};
const Types types = {1, 1, 1, 1, 1, 1, 1, control_token, user_token};
const Texts merges = {"a b", "1 2"};

GgufBytes tiny(const std::string& pre = "gpt-2") {
  return testing::gpt2_gguf(tokens, types, merges, pre);
}

void expect_error(const GgufBytes& gguf, const std::string& part) {
  EXPECT_THAT([&] { testing::open_tokenizer(gguf); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("model.gguf"), HasSubstr(part), HasSubstr("--tokens"), Not(HasSubstr("\n")))));
}

TEST(GgufByteLevelBpe, ByHand) {
  const auto tokenizer = testing::open_tokenizer(tiny());
  EXPECT_EQ(tokenizer->encode("ab ab"), (Ids{2, 3, 2}));
  EXPECT_EQ(tokenizer->encode("b12a"), (Ids{1, 6, 0}));
  EXPECT_EQ(tokenizer->vocabulary_size(), 9);
  EXPECT_EQ(tokenizer->description(), "byte-level BPE, 9 tokens (GGUF, gpt-2)");
}

TEST(GgufByteLevelBpe, ControlAndUserTokensAreFoundInTheText) {
  const auto tokenizer = testing::open_tokenizer(tiny());
  EXPECT_EQ(tokenizer->encode("ab<s>ab"), (Ids{2, 7, 2}));
  EXPECT_EQ(tokenizer->encode("ba ba"), (Ids{1, 8, 0}));  // "a b" is taken before the text is cut into words
}

TEST(GgufByteLevelBpe, UnusedTokensAreNot) {
  Types changed = types;
  changed[7] = testing::unused_token;
  EXPECT_THAT([&] { testing::open_tokenizer(testing::gpt2_gguf(tokens, changed, merges, "gpt-2"))->encode("<s>"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("U+003C")));  // "<" is not in the vocabulary
}

TEST(GgufByteLevelBpe, NamedPreTokenizerCutsWords) {
  EXPECT_EQ(testing::open_tokenizer(tiny("gpt-2"))->encode("12"), (Ids{6}));
  EXPECT_EQ(testing::open_tokenizer(tiny("qwen2"))->encode("12"), (Ids{4, 5}));  // single digits
}

TEST(GgufByteLevelBpe, WholeWordsWhereMergesAreIgnored) {
  const Texts whole = {"a",  "b",  "c", "ab",
                       "bc", "abc"};  // no merge leads to "abc": "a b" comes first, and nothing joins "ab" and "c"
  const Types plain(whole.size(), normal_token);
  EXPECT_EQ(testing::open_tokenizer(testing::gpt2_gguf(whole, plain, {"a b", "b c"}, "dbrx"))->encode("abc"),
            (Ids{3, 2}));
  EXPECT_EQ(testing::open_tokenizer(testing::gpt2_gguf(whole, plain, {"a b", "b c"}, "llama-bpe"))->encode("abc"),
            (Ids{5}));
}

TEST(GgufByteLevelBpe, BosByTheFileElseByTheName) {
  EXPECT_FALSE(testing::open_tokenizer(tiny("gpt-2"))->adds_bos());
  EXPECT_TRUE(testing::open_tokenizer(tiny("llama-bpe"))->adds_bos());
  EXPECT_TRUE(testing::open_tokenizer(tiny("tekken"))->adds_bos());
  EXPECT_TRUE(testing::open_tokenizer(tiny("gpt-2").add("tokenizer.ggml.add_bos_token", true))->adds_bos());
  EXPECT_FALSE(testing::open_tokenizer(tiny("llama-bpe").add("tokenizer.ggml.add_bos_token", false))->adds_bos());
  EXPECT_EQ(testing::open_tokenizer(tiny())->bos_token(), std::nullopt);
  EXPECT_EQ(testing::open_tokenizer(tiny().add("tokenizer.ggml.bos_token_id", 7u))->bos_token(), 7);
}

TEST(GgufByteLevelBpe, BosIsInDoubtIfTheFileDoesNotSayAndProgramsDiffer) {
  for (const char* name : {"llama4", "smaug-bpe", "deepseek-llm", "deepseek-v3", "deepseek-r1-qwen"}) {
    EXPECT_THAT(testing::open_tokenizer(tiny(name))->bos_doubt(),
                AllOf(HasSubstr("the file has no tokenizer.ggml.add_bos_token"), HasSubstr(name)));
    EXPECT_EQ(testing::open_tokenizer(tiny(name).add("tokenizer.ggml.add_bos_token", true))->bos_doubt(), "");
  }
  EXPECT_EQ(testing::open_tokenizer(tiny("pixtral"))->bos_doubt(), "");
  EXPECT_TRUE(testing::open_tokenizer(tiny("pixtral"))->adds_bos());
}

TEST(GgufByteLevelBpe, BrokenVocabulariesAreNamed) {
  expect_error(testing::gpt2_gguf({}, {}, merges, "gpt-2"), "no tokenizer.ggml.tokens");
  expect_error(testing::gpt2_gguf(tokens, {1, 1}, merges, "gpt-2"),
               "tokenizer.ggml.token_type has 2 entries for 9 tokens");
  Types zero = types, byte = types;
  zero[3] = 0;
  byte[3] = testing::byte_token;
  expect_error(testing::gpt2_gguf(tokens, zero, merges, "gpt-2"), "token 3 has type 0");
  expect_error(testing::gpt2_gguf(tokens, byte, merges, "gpt-2"), "token 3 is of type byte");
  Texts twice = tokens, broken = tokens;
  twice[1] = "a";
  broken[4] = "1\xC3";
  expect_error(testing::gpt2_gguf(twice, types, merges, "gpt-2"), "token 'a' has the ids 0 and 1");
  expect_error(testing::gpt2_gguf(broken, types, merges, "gpt-2"), "token 4 ('1\\xc3') is not UTF-8 at its byte 1");
  expect_error(tiny().add("tokenizer.ggml.bos_token_id", 9u), "tokenizer.ggml.bos_token_id");
  expect_error(tiny().add("tokenizer.ggml.bos_token_id", -1), "tokenizer.ggml.bos_token_id");
}

TEST(GgufByteLevelBpe, BrokenMergesAreNamed) {
  expect_error(testing::gpt2_gguf(tokens, types, {"a b", "ab"}, "gpt-2"), "tokenizer.ggml.merges: merge 1: 'ab'");
  expect_error(testing::gpt2_gguf(tokens, types, {"a 1"}, "gpt-2"), "needs 'a1'");
  expect_error(testing::gpt2_gguf(tokens, types, {"a \xFF"}, "gpt-2"), "merge 0: 'a \\xff' is not UTF-8 at its byte 2");
  GgufBytes without;
  without.add("tokenizer.ggml.model", "gpt2")
      .add_list("tokenizer.ggml.tokens", tokens)
      .add_list("tokenizer.ggml.token_type", types);
  without.add("tokenizer.ggml.pre", "gpt-2");
  expect_error(without, "no tokenizer.ggml.merges");
}

TEST(GgufByteLevelBpe, PreTokenizerMustBeKnown) {
  expect_error(tiny("llama_bpe"), "'llama_bpe' is not known; known are bloom, command-r");
  expect_error(tiny("llama_bpe"), "did you mean 'llama-bpe'?");
  expect_error(tiny("default"), "'default' is not the pattern of any model");
  GgufBytes without;
  without.add("tokenizer.ggml.model", "gpt2")
      .add_list("tokenizer.ggml.tokens", tokens)
      .add_list("tokenizer.ggml.token_type", types);
  without.add_list("tokenizer.ggml.merges", merges);
  expect_error(without, "no tokenizer.ggml.pre");
  expect_error(tiny().add("tokenizer.ggml.add_space_prefix", true), "tokenizer.ggml.add_space_prefix");
}

TEST(GgufByteLevelBpe, EveryNameEqualsTheReference) {
  const Json golden = read_json_file(GAINLENS_SOURCE_DIR "/tests/tokenizers/golden/gguf_pre.json");
  auto all = golden.at("tokens").get<Texts>();
  Types kinds(all.size(), normal_token);
  for (const Json& token : golden.at("added")) {
    all.push_back(token.at("content").get<std::string>());
    kinds.push_back(token.at("special").get<bool>() ? control_token : user_token);
  }
  const auto texts = golden.at("texts").get<Texts>();
  ASSERT_GE(golden.at("cases").size(), 18u);
  for (const Json& item : golden.at("cases")) {
    const std::string name = item.at("name").get<std::string>();
    const auto tokenizer =
        testing::open_tokenizer(testing::gpt2_gguf(all, kinds, golden.at("merges").get<Texts>(), name));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(tokenizer->encode(texts[i]), item.at("ids").at(i).get<Ids>()) << name << ": " << Json(texts[i]).dump();
    }
  }
}

TEST(GgufByteLevelBpe, EveryNameHasAReference) {
  const Json golden = read_json_file(GAINLENS_SOURCE_DIR "/tests/tokenizers/golden/gguf_pre.json");
  std::vector<std::string> names;
  for (const Json& item : golden.at("cases")) names.push_back(item.at("name").get<std::string>());
  EXPECT_THAT(gguf_pre_tokenizer_names(), ::testing::UnorderedElementsAreArray(names));
}

}  // namespace gguf_byte_level_bpe_test
}  // namespace gainlens::tokenizers
