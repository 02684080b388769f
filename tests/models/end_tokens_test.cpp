#include "models/checkpoint/end_tokens.h"

#include "core/json.h"
#include "models/checkpoint_folder.h"
#include "support/file_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::models {
namespace end_tokens_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

/// What a checkpoint of 5 tokens says.
/// @param generation  the content of generation_config.json; empty: there is no such file
EndTokens of(const Json& eos, const std::string& generation = "") {
  Json config = testing::tiny_config();
  if (!eos.is_discarded()) config["eos_token_id"] = eos;
  testing::CheckpointFolder folder(config);
  folder.add_tiny_tensors();
  folder.write();
  if (!generation.empty()) gainlens::testing::write_file(folder.path() / "generation_config.json", generation);
  return end_tokens(open_checkpoint(folder.path()));
}

const Json no_key(Json::value_t::discarded);

TEST(EndTokens, AreThoseOfTheConfiguration) {
  EXPECT_THAT(of(2).ids, ElementsAre(2));
  EXPECT_EQ(of(2).source, "eos_token_id of config.json");
  EXPECT_THAT(of({4, 2, 4}).ids, ElementsAre(2, 4));
  EXPECT_THAT(of(no_key).ids, IsEmpty());
  EXPECT_EQ(of(no_key).source, "");
  EXPECT_THAT(of(nullptr).ids, IsEmpty());
}

TEST(EndTokens, ThoseOfGenerationComeFirst) {
  EXPECT_THAT(of(2, R"({"eos_token_id": [1, 3]})").ids, ElementsAre(1, 3));
  EXPECT_EQ(of(2, R"({"eos_token_id": 1})").source, "eos_token_id of generation_config.json");
  EXPECT_THAT(of(2, "{}").ids, ElementsAre(2));
  EXPECT_THAT(of(2, R"({"eos_token_id": null})").ids, ElementsAre(2));
}

TEST(EndTokens, OutsideOfTheVocabularyEndNoText) {
  EXPECT_THAT(of(5).ids, IsEmpty());
  EXPECT_EQ(of(5).source, "");
  EXPECT_THAT(of(5).outside, ElementsAre(5));
  EXPECT_THAT(of({-1, 4, 50256}).ids, ElementsAre(4));
  EXPECT_THAT(of({-1, 4, 50256}).outside, ElementsAre(-1, 50256));
}

TEST(EndTokens, OtherValuesAreRefused) {
  EXPECT_THAT([] { of(2, R"({"eos_token_id": "</s>"})"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("'eos_token_id' is \"</s>\"; must be an id, or a list of ids")));
  EXPECT_THROW(of(2, R"({"eos_token_id": [1.5]})"), InvalidArgument);
  EXPECT_THROW(of(2, "{"), InvalidArgument);
}

TEST(EndTokens, OfGgufAreThoseOfItsTokenizer) {
  const std::string golden = GAINLENS_SOURCE_DIR "/tests/golden/gguf/";
  const EndTokens found = end_tokens(open_checkpoint(golden + "llama.gguf"));
  for (const std::int64_t id : found.ids) EXPECT_LT(id, 64);
  EXPECT_EQ(found.ids.empty(), found.source.empty());
}

}  // namespace end_tokens_test
}  // namespace gainlens::models
