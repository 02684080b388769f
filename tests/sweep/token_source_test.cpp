#include "sweep/token_source.h"

#include "core/error.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace gainlens::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class TokenIds : public ::testing::Test {
 protected:
  TokenSourceOptions options(const std::string& json) const {
    const auto path = folder_.path() / "ids.json";
    std::ofstream(path) << json;
    return {{}, path, data::BosPolicy::automatic};
  }
  gainlens::testing::TemporaryFolder folder_;
};

TEST_F(TokenIds, AreTakenAsTheyAre) {
  const auto source = read_tokens(options("[3, 1, 2]"), folder_.path(), 4, 1);
  EXPECT_THAT(source.tokens, ElementsAre(3, 1, 2));
  EXPECT_FALSE(source.bos.token);  // without a tokenizer, auto means never
  EXPECT_EQ(source.tokenizer_sha256, "tokens");
  EXPECT_EQ(source.text_sha256.size(), 64u);
}

TEST_F(TokenIds, AlwaysTakesTheConfigsBos) {
  auto asked = options("[3, 2]");
  asked.bos = data::BosPolicy::always;
  EXPECT_EQ(read_tokens(asked, folder_.path(), 4, 1).bos.token, 1);
}

TEST_F(TokenIds, OutsideTheVocabularyAreNamed) {
  EXPECT_THAT(
      [&] { read_tokens(options("[0, 4]"), folder_.path(), 4, 1); },
      ThrowsMessage<InvalidArgument>(HasSubstr("token id 4 at index 1 lies outside the model's vocabulary of 4")));
}

TEST_F(TokenIds, BosOutsideTheVocabularyIsRefused) {
  auto asked = options("[0, 1]");
  asked.bos = data::BosPolicy::always;
  EXPECT_THAT([&] { read_tokens(asked, folder_.path(), 4, 9); }, ThrowsMessage<InvalidArgument>(HasSubstr("id 9")));
}

TEST_F(TokenIds, NeitherSourceIsRefused) {
  EXPECT_THAT([&] { read_tokens({}, folder_.path(), 4, 1); },
              ThrowsMessage<InvalidArgument>(HasSubstr("--text: there is no text, and there are no token ids; give "
                                                       "either --text FILE or --tokens FILE.json")));
}

TEST(Text, OfARealCheckpoint) {
  const std::filesystem::path demo = GAINLENS_SOURCE_DIR "/data/demo";
  const auto source = read_tokens({demo / "text.txt", {}, data::BosPolicy::automatic}, demo / "gated", 2048, 1);
  EXPECT_EQ(source.tokens.size(), 17516u);  // the number in data/demo/README.md
  EXPECT_EQ(source.bos.token, 1);
  EXPECT_EQ(source.text_sha256.size(), 64u);
  EXPECT_EQ(source.tokenizer_sha256.size(), 64u);
}

}  // namespace
}  // namespace gainlens::sweep
