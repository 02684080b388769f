#include "tokenizers/growing_text.h"

#include "core/random.h"
#include "core/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gainlens::tokenizers {
namespace growing_text_test {

/// Tokens with these bytes, and nothing else.
class Pieces : public Tokenizer {
 public:
  explicit Pieces(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
  std::vector<TokenId> encode_from(std::string_view, std::size_t) const override { return {}; }
  std::size_t last_cut(std::string_view, std::size_t begin) const override { return begin; }
  bool continues_at_cuts() const override { return false; }
  std::size_t longest_text() const override { return 0; }
  std::int64_t vocabulary_size() const override { return std::ssize(pieces_); }
  std::string token_text(TokenId id) const override { return token_bytes(id); }
  std::string token_bytes(TokenId id) const override { return pieces_.at(static_cast<std::size_t>(id)); }
  std::optional<TokenId> bos_token() const override { return std::nullopt; }
  bool adds_bos() const override { return false; }
  std::string description() const override { return "pieces"; }

 private:
  std::vector<std::string> pieces_;
};

/// What each token of the pieces adds, and at last what waits.
std::vector<std::string> grown(const std::vector<std::string>& pieces) {
  const Pieces tokenizer(pieces);
  GrowingText text(tokenizer);
  std::vector<std::string> added;
  for (std::size_t i = 0; i < pieces.size(); ++i) added.push_back(text.add(static_cast<TokenId>(i)));
  added.push_back(text.finish());
  return added;
}

TEST(GrowingText, ACharacterWaitsForItsLastByte) {
  EXPECT_EQ(grown({"a", "\xF0\x9F", "\xA7", "\xBF!", "\xC3"}),
            (std::vector<std::string>{"a", "", "", "\U0001F9FF!", "", "<0xC3>"}));
  // It never comes: what follows shows it.
  EXPECT_EQ(grown({"\xE2\x96", "z"}), (std::vector<std::string>{"", "<0xE2><0x96>z", ""}));
  EXPECT_EQ(grown({"\x96\x96", "\xFF"}), (std::vector<std::string>{"<0x96><0x96>", "", "<0xFF>"}));
  EXPECT_EQ(grown({}), (std::vector<std::string>{""}));
}

/// Bytes of every kind, cut anywhere: the pieces together are the text of all tokens, and each is UTF-8.
TEST(GrowingText, PiecesTogetherAreTheWholeText) {
  const std::string bytes("a\x80\xBF\xC2\xC3\xE2\x96\x81\xED\xA0\xF0\x9F\xA7\xF4\xFF\0", 16);
  Random random(3, 0);
  const auto below = [&random](std::size_t count) {
    return static_cast<std::size_t>(random.uniform() * static_cast<double>(count));
  };
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<std::string> pieces(1 + below(6));
    for (std::string& piece : pieces) {
      for (std::size_t left = below(5); left > 0; --left) piece += bytes[below(bytes.size())];
    }
    std::vector<TokenId> ids;
    for (std::size_t i = 0; i < pieces.size(); ++i) ids.push_back(static_cast<TokenId>(i));
    std::string joined;
    for (const std::string& part : grown(pieces)) {
      EXPECT_FALSE(first_invalid_utf8(part));
      joined += part;
    }
    ASSERT_EQ(joined, Pieces(pieces).decode(ids)) << "trial " << trial;
  }
}

}  // namespace growing_text_test
}  // namespace gainlens::tokenizers
