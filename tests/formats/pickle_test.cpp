#include "formats/pickle.h"

#include "formats/safetensors_bytes.h"
#include "formats/tensor_file.h"

#include <cstdio>

namespace gainlens::formats {
namespace pickle_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

TEST(LooksPickled, ByTheFirstBytes) {
  EXPECT_TRUE(looks_pickled(as_bytes("PK\x03\x04 and so on")));
  EXPECT_TRUE(looks_pickled(as_bytes("\x80\x02}")));
  EXPECT_TRUE(looks_pickled(as_bytes("\x80\x05}")));
  EXPECT_FALSE(looks_pickled(as_bytes("\x80\x06}")));
  EXPECT_FALSE(looks_pickled(as_bytes("\x80")));
  EXPECT_FALSE(looks_pickled(as_bytes("PK")));
  EXPECT_FALSE(looks_pickled(as_bytes("")));
}

TEST(NamedLikePickle, ByTheExtension) {
  for (const char* name : {"pytorch_model.bin", "a.pt", "a.pth", "a.ckpt", "a.pkl"})
    EXPECT_TRUE(named_like_pickle(name)) << name;
  for (const char* name : {"model.safetensors", "bin", "a.pt.json", ""}) EXPECT_FALSE(named_like_pickle(name)) << name;
}

TEST(PickledWeights, SortedWithoutOptimizerStates) {
  const TemporaryFolder folder;
  for (const char* name : {"b.pt", "a.bin", "training_args.bin", "optimizer.pt", "config.json"})
    write_bytes(folder.path() / name, "");
  EXPECT_THAT(pickled_weights(folder.path()), ::testing::ElementsAre(folder.path() / "a.bin", folder.path() / "b.pt"));
  EXPECT_THAT([&] { pickled_weights(folder.path() / "lost"); }, refused_with("lost: cannot be listed"));
}

TEST(ConversionCommand, NamesTheFiles) {
  EXPECT_THAT(conversion_command({"m/a.bin", "m/b.bin"}), EndsWith("model.safetensors 'a.bin' 'b.bin'"));
}

TEST(ConversionCommand, AShellTakesEveryNameAsAName) {
  const TemporaryFolder folder;
  for (const std::string& name :
       {std::string("a'; touch hostile; '.bin"), std::string("$(touch hostile).bin"), std::string("`x` \"y\" \\n.bin"),
        std::string("line\nbreak' \\ \x1b[0m.bin"), std::string("\xff\xc3\xa4'.bin"), std::string(250, 'a') + ".bin"}) {
    const std::string command = conversion_command({name});
    EXPECT_EQ(command.find('\n'), std::string::npos) << command;
    // A shell itself reads the words that follow the program of the command.
    write_bytes(folder.path() / "script", "printf '%s|' " + command.substr(command.rfind("model.safetensors")));
    FILE* const shell = ::popen(("cd " + folder.path().string() + " && bash script").c_str(), "r");
    std::string words(4096, '\0');
    words.resize(std::fread(words.data(), 1, words.size(), shell));
    EXPECT_EQ(::pclose(shell), 0) << command;
    EXPECT_EQ(words, "model.safetensors|" + name + "|");
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "hostile")) << command;
  }
}

TEST(TensorFilePickle, ZipAndPickleAreRefusedWithTheCommand) {
  const TemporaryFolder folder;
  const std::string rest(100, '\x7b');
  EXPECT_THAT([&] { TensorFile::open(write_bytes(folder.path() / "model.pt", "PK\x03\x04" + rest)); },
              refused_with("torch.load"));
  EXPECT_THAT([&] { TensorFile::open(write_bytes(folder.path() / "weights", "\x80\x02" + rest)); },
              refused_with("weights: a pickled PyTorch checkpoint"));
}

TEST(TensorFilePickle, OtherBinFileGetsBothReasons) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { TensorFile::open(write_bytes(folder.path() / "raw.bin", "llama")); },
              refused_with("raw.bin: 5 bytes; a safetensors file begins with 8 bytes that hold the length of its "
                           "header; if it holds pickled"));
}

TEST(TensorFilePickle, SafetensorsWhoseLengthLooksPickledIsRead) {
  const TemporaryFolder folder;
  for (const std::size_t length : {0x280u, 0x4b50u}) {  // the first bytes are 80 02 and "PK"
    std::string header = object(entry("a", "U8", "[1]", "0,1"));
    header.resize(length, ' ');
    EXPECT_TRUE(
        TensorFile::open(write_bytes(folder.path() / "m.safetensors", safetensors_bytes(header, "x"))).has("a"));
  }
}

}  // namespace pickle_test
}  // namespace gainlens::formats
