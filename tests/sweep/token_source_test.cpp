#include "sweep/token_source.h"

#include "core/error.h"
#include "support/recording_listener.h"
#include "support/shared_data.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace gainlens::sweep {
namespace token_source_test {

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

TEST(Text, IsEncodedAsFarAsTokensAreNeeded) {
  const std::filesystem::path demo = GAINLENS_SOURCE_DIR "/data/demo";
  const TokenSourceOptions options{demo / "text.txt", {}, data::BosPolicy::automatic};
  const auto whole = read_tokens(options, demo / "gated", 2048, 1);
  const auto start = read_tokens(options, demo / "gated", 2048, 1, [](bool bos) {
    EXPECT_TRUE(bos);
    return 100;
  });
  EXPECT_TRUE(whole.whole);
  EXPECT_FALSE(start.whole);
  EXPECT_EQ(start.text_sha256, whole.text_sha256);
  ASSERT_GE(start.tokens.size(), 100u);
  EXPECT_LT(start.tokens.size(), whole.tokens.size());
  EXPECT_TRUE(std::equal(start.tokens.begin(), start.tokens.end(), whole.tokens.begin()));
}

class Prompt : public TokenIds {
 protected:
  TokenSource read(const std::string& text) const {
    const auto path = folder_.path() / "prompt.txt";
    std::ofstream(path) << text;
    return read_tokens({path, {}, data::BosPolicy::automatic}, GAINLENS_SOURCE_DIR "/data/demo/gated", 2048, 1);
  }
  std::string told(const std::string& text) const {
    const testing::RecordingListener listener;
    tell_of_line_end(read(text));
    return listener.notices().empty() ? std::string() : listener.notices().front();
  }
};

TEST_F(Prompt, ItsLineEndIsATokenThatIsTold) {
  const auto with = std::ssize(read("The river\n").tokens), without = std::ssize(read("The river").tokens);
  ASSERT_EQ(with, without + 1);
  EXPECT_EQ(told("The river\n"),
            fmt::format("the text ends in a line end, which is a part of its {} tokens; without it there are "
                        "{} (printf '%s' writes none)",
                        with, without));
  EXPECT_EQ(told("The river"), "");
  EXPECT_EQ(told("The\nriver"), "");
  EXPECT_EQ(told(std::string(20'000, 'a') + "\n"), "");  // not a prompt
  EXPECT_TRUE(read("The river\r\n").one_line);
  EXPECT_FALSE(read("The\nriver\n").one_line);
}

}  // namespace token_source_test
}  // namespace gainlens::sweep
