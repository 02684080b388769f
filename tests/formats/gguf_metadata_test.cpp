#include "formats/gguf_file.h"
#include "formats/safetensors_bytes.h"
#include "support/gguf_bytes.h"

#include <limits>
#include <vector>

namespace gainlens::formats {
namespace gguf_metadata_test {

using testing::GgufBytes;
using testing::TemporaryFolder;

class Metadata : public ::testing::Test {
 protected:
  const GgufMetadata& read(const GgufBytes& gguf) {
    file_ = GgufFile::open(gguf.write(folder_.path() / "m.gguf"));
    return file_.metadata();
  }

 private:
  TemporaryFolder folder_;
  GgufFile file_;
};

TEST_F(Metadata, KeysAreSortedAndFound) {
  const auto& metadata = read(GgufBytes().add("b", 1u).add("a", true));
  EXPECT_EQ(metadata.keys(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(metadata.has("a"));
  EXPECT_FALSE(metadata.has("c"));
  ASSERT_NE(metadata.find("b"), nullptr);
  EXPECT_EQ(metadata.find("b")->kind, GgufKind::u32);
  EXPECT_EQ(metadata.find("c"), nullptr);
  EXPECT_THAT(metadata.where(), ::testing::EndsWith("m.gguf"));
  EXPECT_THAT(metadata.place("b"),
              ::testing::EndsWith("m.gguf: byte 37: key 'b'"));  // header 24, key 8 + 1, kind 4
  EXPECT_THROW(metadata.place("c"), InternalError);
}

TEST_F(Metadata, IntegersOfAnyKindWithinTheirRange) {
  const auto& metadata =
      read(GgufBytes().add("n", std::int8_t{-3}).add("big", ~std::uint64_t{0}).add("x", 1.0f).add("b", true));
  EXPECT_EQ(metadata.integer("n", -3, -3), -3);
  EXPECT_EQ(metadata.integer("absent", 0, 1, 7), 7);
  EXPECT_THAT([&] { metadata.integer("n", 0, 9); }, refused_with("key 'n': -3; must be between 0 and 9"));
  EXPECT_THAT([&] { metadata.integer("n", -9, -4, 0); }, refused_with("key 'n': -3; must be between -9 and -4"));
  EXPECT_THAT([&] { metadata.integer("big", 0, 9); },
              refused_with("key 'big': holds 18446744073709551615; must be at most 2^63 - 1"));
  EXPECT_THAT([&] { metadata.integer("x", 0, 9); }, refused_with("key 'x': holds f32; must be integers"));
  EXPECT_THAT([&] { metadata.integer("b", 0, 9); }, refused_with("key 'b': holds boolean; must be integers"));
}

TEST_F(Metadata, AbsentKeyNamesItsNearest) {
  const auto& metadata = read(GgufBytes().add("llama.block_count", 2u));
  EXPECT_THAT([&] { metadata.integer("llama.block_cuont", 0, 9); },
              refused_with("no key 'llama.block_cuont' in its metadata; did you mean 'llama.block_count'?"));
  EXPECT_THAT([&] { metadata.text("absent"); }, refused_with("no key 'absent' in its metadata"));
  EXPECT_EQ(metadata.text("absent", "x"), "x");
  EXPECT_EQ(metadata.number("absent", 0.5), 0.5);
  EXPECT_TRUE(metadata.boolean("absent", true));
  EXPECT_EQ(metadata.texts("absent"), std::nullopt);
  EXPECT_EQ(metadata.integers("absent"), std::nullopt);
  EXPECT_EQ(metadata.numbers("absent"), std::nullopt);
  EXPECT_EQ(metadata.booleans("absent"), std::nullopt);
}

TEST_F(Metadata, NumbersAreFiniteAndExact) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto& metadata = read(GgufBytes()
                                  .add("n", 3)
                                  .add("exact", std::uint64_t{1} << 53)
                                  .add("not exact", (std::uint64_t{1} << 53) + 2)
                                  .add("infinite", infinity)
                                  .add("nan", std::numeric_limits<float>::quiet_NaN())
                                  .add("t", "x"));
  EXPECT_EQ(metadata.number("n"), 3);
  EXPECT_EQ(metadata.number("exact"), 0x1p53);
  EXPECT_THAT([&] { metadata.number("not exact"); }, refused_with("holds 9007199254740994; must be at most 2^53"));
  EXPECT_THAT([&] { metadata.number("infinite"); }, refused_with("key 'infinite': holds inf; must be finite"));
  EXPECT_THAT([&] { metadata.number("nan"); }, refused_with("key 'nan': holds nan; must be finite"));
  EXPECT_THAT([&] { metadata.number("t"); }, refused_with("key 't': holds text; must be numbers"));
}

TEST_F(Metadata, TextsAndBooleansAreNothingElse) {
  const auto& metadata = read(GgufBytes().add("n", 1u).add("t", "x\ny").add("raw", "\xff").add("empty", ""));
  EXPECT_EQ(metadata.text("t"), "x\ny");
  EXPECT_EQ(metadata.text("empty"), "");
  EXPECT_THAT([&] { metadata.text("n"); }, refused_with("key 'n': is u32; must be a text"));
  EXPECT_THAT([&] { metadata.text("raw"); }, refused_with("key 'raw': '\\xff' is not UTF-8"));
  EXPECT_THAT([&] { metadata.boolean("n"); }, refused_with("key 'n': is u32; must be a boolean"));
}

TEST_F(Metadata, ArraysHoldOneKind) {
  const auto& metadata = read(GgufBytes()
                                  .add("n", 1u)
                                  .add_list("texts", std::vector<std::string>{"a", "\xff", ""})
                                  .add_list("bytes", std::vector<std::uint8_t>{1, 255})
                                  .add_list("big", std::vector<std::uint64_t>{1, ~std::uint64_t{0}})
                                  .add_list("scores", std::vector<float>{1, std::numeric_limits<float>::infinity()})
                                  .add_list("flags", std::vector<bool>{false, true})
                                  .add_list("none", std::vector<float>{}));
  EXPECT_EQ(metadata.texts("texts"), (std::vector<std::string_view>{"a", "\xff", ""}));
  EXPECT_EQ(metadata.integers("bytes"), (std::vector<std::int64_t>{1, 255}));
  EXPECT_EQ(metadata.numbers("bytes"), (std::vector<double>{1, 255}));
  EXPECT_EQ(metadata.booleans("flags"), (std::vector<bool>{false, true}));
  EXPECT_EQ(metadata.numbers("none"), std::vector<double>{});
  EXPECT_THAT([&] { metadata.integers("n"); }, refused_with("key 'n': is one u32; must be an array"));
  EXPECT_THAT([&] { metadata.texts("bytes"); }, refused_with("key 'bytes': holds u8; must be texts"));
  EXPECT_THAT([&] { metadata.integers("big"); }, refused_with("holds 18446744073709551615; must be at most 2^63 - 1"));
  EXPECT_THAT([&] { metadata.integers("scores"); }, refused_with("key 'scores': holds f32; must be integers"));
  EXPECT_THAT([&] { metadata.integers("none"); }, refused_with("key 'none': holds f32; must be integers"));
  EXPECT_THAT([&] { metadata.numbers("scores"); }, refused_with("key 'scores': holds inf; must be finite"));
  EXPECT_THAT([&] { metadata.numbers("texts"); }, refused_with("key 'texts': holds text; must be numbers"));
  EXPECT_THAT([&] { metadata.booleans("bytes"); }, refused_with("key 'bytes': holds u8; must be booleans"));
  EXPECT_THAT([&] { metadata.integer("bytes", 0, 1); }, refused_with("key 'bytes': is an array; must be one integer"));
  EXPECT_THAT([&] { metadata.number("bytes"); }, refused_with("key 'bytes': is an array; must be one number"));
}

}  // namespace gguf_metadata_test
}  // namespace gainlens::formats
