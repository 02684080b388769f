// Whether a BOS comes first: golden/bos.json, made with transformers 5 by tests/golden/make_bos_golden.py.
#include "core/json.h"
#include "support/text_file.h"
#include "tokenizers/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::tokenizers {
namespace bos_golden_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Json& golden() {
  static const Json document = read_json_file(GAINLENS_SOURCE_DIR "/tests/tokenizers/golden/bos.json");
  return document;
}

/// Whether tokenizer_config.json contradicts the post-processor, written out.
bool contradicts(const Json& config, bool in_template) {
  if (config.contains("add_bos_token")) return config.at("add_bos_token").get<bool>() != in_template;
  const std::string name = config.at("tokenizer_class").get<std::string>();
  return !in_template && (name.starts_with("LlamaTokenizer") || name.starts_with("GemmaTokenizer"));
}

TEST(BosGolden, AsTransformersWhereTheFilesAgreeElseInDoubt) {
  ASSERT_EQ(golden().at("cases").size(), 72u);
  int doubts = 0;
  for (const Json& item : golden().at("cases")) {
    const testing::TemporaryFolder folder;
    const std::string kind = item.at("post_processor").get<std::string>();
    const Json& config = item.at("config");
    testing::write_file(folder.path() / "tokenizer_config.json", config.dump());
    testing::write_file(folder.path() / "tokenizer.json", golden().at("tokenizers").at(kind).dump());
    const auto tokenizer = open_tokenizer(folder.path());
    EXPECT_EQ(tokenizer->adds_bos(), item.at("bos_first").get<bool>()) << item.dump();
    EXPECT_EQ(tokenizer->bos_token(), 1) << item.dump();
    EXPECT_EQ(!tokenizer->bos_doubt().empty(), contradicts(config, kind == "template with BOS")) << item.dump();
    if (!tokenizer->bos_doubt().empty()) ++doubts;
  }
  EXPECT_EQ(doubts, 33);  // 6 with add_bos_token false, 18 with true, 9 of 3 classes that add a BOS by default
}

TEST(BosGolden, DoubtIsSaidInWords) {
  const testing::TemporaryFolder folder;
  const auto doubt = [&](const char* kind, const char* config) {
    testing::write_file(folder.path() / "tokenizer_config.json", config);
    testing::write_file(folder.path() / "tokenizer.json", golden().at("tokenizers").at(kind).dump());
    return open_tokenizer(folder.path())->bos_doubt();
  };
  EXPECT_EQ(doubt("template with BOS", R"({"add_bos_token": false})"),
            "the post_processor of tokenizer.json puts a BOS first, but tokenizer_config.json says add_bos_token: "
            "false; transformers 5 follows the former, transformers 4 often the latter");
  EXPECT_THAT(doubt("byte level", R"({"add_bos_token": true})"),
              AllOf(HasSubstr("puts no BOS first"), HasSubstr("says add_bos_token: true")));
  EXPECT_THAT(doubt("none", R"({"tokenizer_class": "LlamaTokenizerFast"})"),
              HasSubstr("names LlamaTokenizerFast, which adds a BOS unless told otherwise"));
  EXPECT_EQ(doubt("template with BOS", "{}"), "");
}

}  // namespace bos_golden_test
}  // namespace gainlens::tokenizers
