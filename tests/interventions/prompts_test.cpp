#include "interventions/prompts.h"

#include "core/error.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::interventions {
namespace prompts_test {

using gainlens::testing::refusal_of;
using gainlens::testing::write_file;
using ::testing::HasSubstr;

const std::filesystem::path demo = GAINLENS_SOURCE_DIR "/data/demo/gated";

PromptPair read(const std::string& clean, const std::string& corrupt, std::int64_t vocabulary = 1 << 20) {
  return read_prompts({clean, corrupt, data::BosPolicy::automatic}, demo, vocabulary, 1);
}
std::string refusal(const std::string& clean, const std::string& corrupt, std::int64_t vocabulary = 1 << 20) {
  return refusal_of([&] { read(clean, corrupt, vocabulary); });
}

TEST(Prompts, AreTextsOrFiles) {
  const gainlens::testing::TemporaryFolder folder;
  const PromptPair given = read("The man and the dog", "The dog and the man");
  EXPECT_EQ(given.clean.size(), given.corrupt.size());
  EXPECT_EQ(given.clean.front(), 1);  // BOS
  const std::string file = write_file(folder.path() / "clean.txt", "The man and the dog\n");
  EXPECT_EQ(read(file, "The dog and the man").clean, given.clean);
  const std::string a = write_file(folder.path() / "a.json", "[5, 6, 7]"),
                    b = write_file(folder.path() / "b.json", "[5, 8, 7]");
  const PromptPair ids = read(a, b);
  EXPECT_EQ(ids.clean, (std::vector<tokenizers::TokenId>{5, 6, 7}));
  EXPECT_EQ(ids.tokenizer, nullptr);
  EXPECT_THAT(refusal(a, "The dog"), HasSubstr("one holds token ids and the other text"));
  EXPECT_THAT(refusal(a, b, 8), HasSubstr("--corrupt: token id 8 at index 1 lies outside the model's vocabulary of 8"));
  const std::string one = write_file(folder.path() / "one.json", "[5]"),
                    other = write_file(folder.path() / "o.json", "[6]");
  EXPECT_THAT(refusal(one, other), HasSubstr("patching needs at least 2"));
  EXPECT_THAT(refusal(write_file(folder.path() / "none.json", "[]"), b), HasSubstr("an empty array"));
}

TEST(Prompts, OfOtherLengthsAreShownSideBySide) {
  const std::string message = refusal("The man and the", "The man and the man");
  EXPECT_THAT(message, HasSubstr("5 and 6 tokens; they must have equally many"));
  EXPECT_THAT(message, HasSubstr("4 '\u2581the'|'\u2581the'  5 -|'\u2581man'"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(Prompts, WrongOnesAreRefused) {
  EXPECT_THAT(refusal("", "The dog"), HasSubstr("--clean: is missing or empty"));
  EXPECT_THAT(refusal("The dog", ""), HasSubstr("--corrupt: is missing or empty"));
  EXPECT_THAT(refusal("The dog", "The dog"), HasSubstr("there is nothing to patch"));
  // A mistyped name of a file is no prompt.
  for (const char* name : {"none.json", "none.txt", "prompts/none", "/tmp"})
    EXPECT_THAT(refusal("The dog", name), HasSubstr(std::string("--corrupt: '") + name + "' is no file"));
}

}  // namespace prompts_test
}  // namespace gainlens::interventions
