// Tests which tokenizer is opened for a path.
#include "core/error.h"
#include "core/sha256.h"
#include "support/text_file.h"
#include "tokenizers/gguf_vocabularies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::tokenizers {
namespace open_tokenizer_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class OpenTokenizer : public ::testing::Test {
 protected:
  testing::GgufBytes gguf() const { return testing::gpt2_gguf({"a", "b"}, {1, 1}, {}, "gpt-2"); }
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
  void put_json() {
    testing::write_file(path("tokenizer.json"),
                        R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2}, "merges": []}})");
  }

  testing::TemporaryFolder folder_;
};

TEST_F(OpenTokenizer, GgufFileIsItsOwnTokenizer) {
  const auto file = gguf().write(path("model.gguf"));
  EXPECT_EQ(open_tokenizer(file)->vocabulary_size(), 2);
  EXPECT_THAT(tokenizer_files(file), ElementsAre(file));
}

TEST_F(OpenTokenizer, ALoopOfLinksIsATokenizerThatCannotBeRead) {
  for (const char* name : {"tokenizer.model", "tokenizer.json"}) {
    std::filesystem::create_symlink(name, path(name));
    EXPECT_THAT([&] { open_tokenizer(folder_.path()); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(name), HasSubstr("Too many levels of symbolic links"))));
  }
  std::filesystem::remove(path("tokenizer.json"));
  put_json();
  std::filesystem::create_symlink("tokenizer_config.json", path("tokenizer_config.json"));
  EXPECT_THAT([&] { open_tokenizer(folder_.path()); },
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("tokenizer_config.json: cannot be opened for reading: Too many levels")));
}

TEST_F(OpenTokenizer, FolderWithOneGgufStandsForIt) {
  const auto file = gguf().write(path("model.gguf"));
  EXPECT_EQ(open_tokenizer(folder_.path())->vocabulary_size(), 2);
  EXPECT_THAT(tokenizer_files(folder_.path()), ElementsAre(file));
}

TEST_F(OpenTokenizer, GgufComesBeforeATokenizerJsonBesideIt) {
  put_json();
  EXPECT_EQ(open_tokenizer(folder_.path())->vocabulary_size(), 3);
  const auto file = gguf().write(path("model.gguf"));
  EXPECT_EQ(open_tokenizer(folder_.path())->vocabulary_size(), 2);
  EXPECT_THAT(tokenizer_files(folder_.path()), ElementsAre(file));
}

TEST_F(OpenTokenizer, SeveralGgufCheckpointsAreRefused) {
  gguf().write(path("a.gguf"));
  gguf().write(path("b.gguf"));
  const auto named =
      AllOf(HasSubstr("2 GGUF checkpoints (a.gguf and b.gguf)"), HasSubstr("give the file instead of the folder"));
  EXPECT_THAT([&] { open_tokenizer(folder_.path()); }, ThrowsMessage<InvalidArgument>(named));
  EXPECT_THAT([&] { tokenizer_files(folder_.path()); }, ThrowsMessage<InvalidArgument>(named));
}

TEST_F(OpenTokenizer, PartsOfASplitFileAreOneCheckpoint) {
  for (const char* name : {"m-00002-of-00003.gguf", "m-00001-of-00003.gguf", "m-00003-of-00003.gguf"})
    testing::write_file(path(name), "");
  EXPECT_EQ(formats::find_gguf(folder_.path()), path("m-00001-of-00003.gguf"));
  testing::write_file(path("m-00001-of-00002.gguf"), "");  // part of another split file with the same name
  EXPECT_THAT([&] { formats::find_gguf(folder_.path()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("2 GGUF checkpoints")));
}

TEST_F(OpenTokenizer, SplitFileHashesItsFirstPart) {
  const std::uint16_t two = 2, zero = 0, one = 1;
  const std::int32_t tensors = 0;
  auto first = gguf();
  first.add("split.no", zero)
      .add("split.count", two)
      .add("split.tensors.count", tensors)
      .write(path("m-00001-of-00002.gguf"));
  testing::GgufBytes second;
  second.add("split.no", one)
      .add("split.count", two)
      .add("split.tensors.count", tensors)
      .write(path("m-00002-of-00002.gguf"));
  EXPECT_THAT(tokenizer_files(path("m-00002-of-00002.gguf")), ElementsAre(path("m-00001-of-00002.gguf")));
  EXPECT_EQ(open_tokenizer(path("m-00002-of-00002.gguf"))->vocabulary_size(), 2);
}

TEST_F(OpenTokenizer, ChecksumOfAGgufIsThatOfItsVocabulary) {
  const std::string checksum = tokenizer_sha256(gguf().write(path("a.gguf")));
  EXPECT_EQ(checksum.size(), 64u);
  EXPECT_EQ(tokenizer_sha256(gguf().add("general.name", "another").tensor("w", {1}, {1.0f}).write(path("b.gguf"))),
            checksum);
  EXPECT_NE(tokenizer_sha256(gguf().add("tokenizer.ggml.add_bos_token", true).write(path("c.gguf"))), checksum);
  EXPECT_NE(tokenizer_sha256(testing::gpt2_gguf({"a", "c"}, {1, 1}, {}, "gpt-2").write(path("d.gguf"))), checksum);
}

TEST_F(OpenTokenizer, ChecksumOfAFolderIsThatOfItsFiles) {
  put_json();
  const std::string line = "tokenizer.json " + sha256_file(path("tokenizer.json")) + "\n";
  EXPECT_EQ(tokenizer_sha256(folder_.path()), sha256_hex(line));
}

TEST_F(OpenTokenizer, OtherPathsStandForNoGguf) {
  put_json();
  EXPECT_EQ(formats::find_gguf(folder_.path()), std::nullopt);
  EXPECT_EQ(formats::find_gguf(path("tokenizer.json")), std::nullopt);
  EXPECT_EQ(formats::find_gguf(path("missing")), std::nullopt);
  EXPECT_THAT([&] { open_tokenizer(path("missing.gguf")); }, ThrowsMessage<InvalidArgument>(HasSubstr("missing.gguf")));
}

TEST_F(OpenTokenizer, BrokenGgufNamesTheFile) {
  testing::write_file(path("model.gguf"), "GGUF");
  EXPECT_THAT([&] { open_tokenizer(folder_.path()); }, ThrowsMessage<InvalidArgument>(HasSubstr("model.gguf")));
}

}  // namespace open_tokenizer_test
}  // namespace gainlens::tokenizers
