#include "core/error.h"
#include "core/json.h"
#include "support/text_file.h"
#include "tokenizers/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::tokenizers {
namespace tokenizer_json_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Ids = std::vector<TokenId>;

/// a 0, b 1, ab 2, _ 3, <s> 4
Json tiny() {
  return Json::parse(
      R"({"added_tokens": [{"id": 4, "content": "<s>", "special": true}], "normalizer": null, "pre_tokenizer": null,
    "post_processor": null, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "_": 3}, "merges": ["a b"]}})");
}

class TokenizerJson : public ::testing::Test {
 protected:
  std::unique_ptr<Tokenizer> open_text(std::string_view content) {
    return open_tokenizer_json(testing::write_file(folder_.path() / "tokenizer.json", content));
  }
  std::unique_ptr<Tokenizer> open(const Json& document) { return open_text(document.dump()); }
  void configure(std::string_view config) { testing::write_file(folder_.path() / "tokenizer_config.json", config); }

  /// Expects that the tiny tokenizer with one value replaced is refused. The message contains `what`, the file and
  /// `--tokens`.
  void expect_refused(const std::string& pointer, const Json& value, const std::string& what) {
    Json document = tiny();
    document[Json::json_pointer(pointer)] = value;
    expect_text_refused(document.dump(), what);
  }
  void expect_text_refused(const std::string& content, const std::string& what) {
    EXPECT_THAT([&] { open_text(content); }, ThrowsMessage<InvalidArgument>(AllOf(
                                                 HasSubstr(what), HasSubstr("tokenizer.json"), HasSubstr("--tokens"))))
        << content;
  }
  testing::TemporaryFolder folder_;
};

TEST_F(TokenizerJson, TinyByHand) {
  const auto tokenizer = open(tiny());
  EXPECT_EQ(tokenizer->encode("abba<s>ab"), (Ids{2, 1, 0, 4, 2}));
  EXPECT_EQ(tokenizer->encode(""), Ids{});
  EXPECT_EQ(tokenizer->vocabulary_size(), 5);  // with the added token
  EXPECT_EQ(tokenizer->description(), "BPE, 5 tokens (tokenizer.json)");
}

// Each step of a normaliser may make a text longer; together they could make it as long as memory.
TEST_F(TokenizerJson, ANormaliserThatMultipliesTextsIsRefused) {
  const Json longer = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(1000, 'a')}};
  const Json bytes = {{"type", "ByteLevel"}};
  for (const Json& steps : {Json::array({longer, longer}), Json(std::vector<Json>(20, bytes))}) {
    Json document = tiny();
    document["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
    const auto tokenizer = open(document);
    EXPECT_THAT([&] { tokenizer->encode(std::string(3000, 'a') + "\xc3\xa9"); },
                ThrowsMessage<InvalidArgument>(HasSubstr("makes a text more than 64 times as long")));
  }
  Json document = tiny();
  document["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "b"}}}, {"content", std::string(60, 'a')}};
  EXPECT_EQ(open(document)->encode(std::string(300, 'b')).size(), 18'000u);
  document["normalizer"]["content"] = std::string(1000, 'a');
  EXPECT_THAT([&] { open(document)->encode(std::string(300, 'b')); },
              ThrowsMessage<InvalidArgument>(HasSubstr("makes a text more than 64 times as long")));
}

TEST_F(TokenizerJson, GzippedToo) {
  EXPECT_EQ(open_text(testing::gzipped(tiny().dump()))->encode("ab"), Ids{2});
}

TEST_F(TokenizerJson, IdsWithGapsCountToTheLargest) {
  Json document = tiny();
  document["added_tokens"][0]["id"] = 10;
  const auto tokenizer = open(document);
  EXPECT_EQ(tokenizer->vocabulary_size(), 11);
  EXPECT_EQ(tokenizer->encode("<s>"), Ids{10});
}

TEST_F(TokenizerJson, TextThatIsNotUtf8) {
  EXPECT_THAT([&] { open(tiny())->encode("ab\xFF"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("not UTF-8 at byte 2")));
}

TEST_F(TokenizerJson, UnsupportedPartsAreNamed) {
  expect_refused("/model/type", "Unigram", "model 'Unigram'");
  expect_refused("/model", Json{{"type", "WordPiece"}}, "model 'WordPiece'");
  expect_refused("/model/dropout", 0.1, "dropout");
  expect_refused("/model/end_of_word_suffix", "</w>", "'</w>'");
  expect_refused("/model/continuing_subword_prefix", "##", "'##'");
  expect_refused("/model/novelty", 1, "field 'novelty'");
  expect_refused("/normalizer", Json{{"type", "BertNormalizer"}}, "normalizer 'BertNormalizer'");
  expect_refused("/normalizer", Json::parse(R"({"type": "Sequence", "normalizers": [{"type": "Nmt"}]})"),
                 "normalizer.normalizers[0]: normalizer 'Nmt'");
  expect_refused("/pre_tokenizer", Json{{"type", "BertPreTokenizer"}}, "pre-tokenizer 'BertPreTokenizer'");
  expect_refused("/pre_tokenizer",
                 Json::parse(R"({"type": "Split", "pattern": {"Regex": "a{1,2}+"}, "behavior": "Isolated"})"),
                 "a{1,2}+");
  expect_refused("/pre_tokenizer", Json::parse(R"({"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Torn"})"),
                 "behaviour 'Torn'");
  expect_refused("/pre_tokenizer",
                 Json::parse(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "second"})"),
                 "prepend_scheme 'second'");
  expect_refused("/post_processor", Json{{"type", "BertProcessing"}}, "post-processor 'BertProcessing'");
  expect_refused("/more", 1, "field 'more'");
}

TEST_F(TokenizerJson, BrokenFilesAreNamed) {
  expect_refused("/model/vocab/b", 0, "belongs to another token");
  expect_refused("/model/vocab/b", -1, "has id -1");
  expect_refused("/model/vocab/b", 99999999999, "has id 99999999999");
  expect_refused("/model/vocab/b", "1", "must be an integer");
  expect_refused("/model/vocab", Json::object(), "no tokens");
  expect_refused("/model/merges", Json{"a x"}, "which is not in the vocabulary");
  expect_refused("/model/merges", Json{"a b c"}, "one space between");
  expect_refused("/model/merges", Json::parse(R"([["a"]])"), "1 parts");
  expect_refused("/model/merges", nullptr, "must be an array");
  expect_refused("/added_tokens/0/id", 0, "belongs to another token");
  expect_refused("/added_tokens/0/content", "", "is empty");
  expect_refused("/added_tokens/0/content", "ab", "has the ids 2 and 4");
  expect_refused("/pre_tokenizer", Json::parse(R"({"type": "Metaspace", "replacement": "__"})"),
                 "must be one character");
  expect_refused("/normalizer", Json{{"kind", "NFC"}}, "must be a text");
  expect_text_refused("", "not valid JSON");
  expect_text_refused("[1]", "must be an object");
  expect_text_refused(std::string(5000, '['), "nested deeper");
  expect_text_refused(R"({"model": 1, "model": 2})", "twice");
  expect_text_refused(testing::gzipped(tiny().dump()).substr(0, 40), "truncated");
}

TEST_F(TokenizerJson, TemplateSaysBos) {
  Json document = tiny();
  document["post_processor"] =
      Json::parse(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [4], "tokens": ["<s>"]}}}]})");
  const auto tokenizer = open(document);
  EXPECT_EQ(tokenizer->bos_token(), 4);
  EXPECT_TRUE(tokenizer->adds_bos());
  EXPECT_EQ(tokenizer->encode("a"), Ids{0}) << "encode must not add the BOS";

  document["post_processor"]["processors"][1]["single"].erase(0);
  EXPECT_FALSE(open(document)->adds_bos());
  document["post_processor"]["processors"][1]["single"] =
      Json::parse(R"([{"SpecialToken": {"id": "<x>", "type_id": 0}}])");
  EXPECT_THAT([&] { open(document); }, ThrowsMessage<InvalidArgument>(HasSubstr("the template names '<x>'")));
}

TEST_F(TokenizerJson, ConfigThatContradictsTheTemplateIsADoubt) {
  configure(R"({"add_bos_token": true, "bos_token": {"content": "<s>", "lstrip": false}})");
  EXPECT_FALSE(open(tiny())->adds_bos());
  EXPECT_THAT(open(tiny())->bos_doubt(), HasSubstr("add_bos_token: true"));
  EXPECT_EQ(open(tiny())->bos_token(), 4);
  configure(R"({"bos_token": "<s>"})");
  EXPECT_FALSE(open(tiny())->adds_bos());
  EXPECT_EQ(open(tiny())->bos_doubt(), "");
  EXPECT_EQ(open(tiny())->bos_token(), 4);
  configure(R"({"tokenizer_class": "LlamaTokenizerFast"})");
  EXPECT_THAT(open(tiny())->bos_doubt(), HasSubstr("names LlamaTokenizerFast"));
  configure(R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": false})");
  EXPECT_FALSE(open(tiny())->adds_bos());
  EXPECT_EQ(open(tiny())->bos_doubt(), "");
  configure(R"({"add_bos_token": "yes"})");
  EXPECT_THAT([&] { open(tiny()); }, ThrowsMessage<InvalidArgument>(HasSubstr("tokenizer_config.json: add_bos_token")));
}

TEST_F(TokenizerJson, TruncationIsSaidNotToApply) {
  Json document = tiny();
  document["truncation"] = {{"max_length", 2}};
  const auto tokenizer = open(document);
  EXPECT_EQ(tokenizer->encode("bbbb").size(), 4u);
  EXPECT_THAT(tokenizer->description(), HasSubstr("truncation is not applied"));
}

TEST_F(TokenizerJson, OlderMetaspaceWithoutScheme) {
  Json document = tiny();
  document["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "_"}, {"add_prefix_space", false}};
  EXPECT_EQ(open(document)->encode("a b"), (Ids{0, 3, 1}));
  document["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_EQ(open(document)->encode("a b"), (Ids{3, 0, 3, 1}));
}

class Folder : public TokenizerJson {
 protected:
  void put(const std::string& name, std::string_view content) { testing::write_file(folder_.path() / name, content); }
  void put_gpt2(std::string_view merges) {
    put("vocab.json", R"({"a": 0, "b": 1, "ab": 2, "\u0120": 3, "<|endoftext|>": 4})");
    put("merges.txt", merges);
  }
};

TEST_F(Folder, WithoutTokenizerSaysWhatWasLookedFor) {
  EXPECT_THAT([&] { open_tokenizer(folder_.path()); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("tokenizer.json"), HasSubstr("tokenizer.model"),
                                                   HasSubstr("merges.txt"), HasSubstr("--tokens"))));
  EXPECT_THAT([&] { tokenizer_files(folder_.path()); }, ThrowsMessage<InvalidArgument>(HasSubstr("no tokenizer")));
  put("vocab.json", "{}");  // not a tokenizer without merges.txt
  EXPECT_THAT([&] { open_tokenizer(folder_.path()); }, ThrowsMessage<InvalidArgument>(HasSubstr("no tokenizer")));
}

TEST_F(Folder, Gpt2FilesByHand) {
  put_gpt2("#version: 0.2\r\na b\r\n");
  const auto tokenizer = open_tokenizer(folder_.path());
  EXPECT_EQ(tokenizer->encode("ab a<|endoftext|>b"), (Ids{2, 3, 0, 4, 1}));
  EXPECT_EQ(tokenizer->bos_token(), 4);
  EXPECT_FALSE(tokenizer->adds_bos());
  EXPECT_EQ(tokenizer->description(), "byte-level BPE, 5 tokens (vocab.json + merges.txt)");
  EXPECT_EQ(tokenizer_files(folder_.path()).size(), 2u);
  configure(R"({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": true})");
  EXPECT_EQ(open_tokenizer(folder_.path())->encode("ab"), (Ids{3, 2}));
  EXPECT_EQ(tokenizer_files(folder_.path()).back().filename(), "tokenizer_config.json");
}

TEST_F(Folder, Gpt2FilesOfAnotherClassAreRefused) {
  put_gpt2("a b\n");
  configure(R"({"tokenizer_class": "Qwen2Tokenizer"})");
  EXPECT_THAT([&] { open_tokenizer(folder_.path()); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("'Qwen2Tokenizer'"), HasSubstr("--tokens"))));
}

TEST_F(Folder, BrokenMergesNameTheLine) {
  put_gpt2("#version: 0.2\na b\n\nb a\n");
  EXPECT_THAT([&] { open_tokenizer(folder_.path()); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("merges.txt: line 3"), HasSubstr("--tokens"))));
}

TEST_F(Folder, BrokenSentencePieceIsRefused) {
  for (const std::string& content : {std::string(), std::string("not a model"), std::string(100, '\xFF')}) {
    put("tokenizer.model", content);
    EXPECT_THAT([&] { open_tokenizer(folder_.path()); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("tokenizer.model"), HasSubstr("--tokens"))));
  }
}

TEST_F(Folder, TokenizerJsonComesFirst) {
  put_gpt2("a b\n");
  put("tokenizer.json", tiny().dump());
  EXPECT_EQ(open_tokenizer(folder_.path())->description(), "BPE, 5 tokens (tokenizer.json)");
  EXPECT_EQ(tokenizer_files(folder_.path()).size(), 1u);
}

}  // namespace tokenizer_json_test
}  // namespace gainlens::tokenizers
