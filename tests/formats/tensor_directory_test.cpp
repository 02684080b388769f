#include "formats/safetensors_bytes.h"
#include "formats/tensor_file.h"

#include <functional>
#include <ostream>
#include <vector>

namespace gainlens::formats {
namespace tensor_directory_test {

using ::testing::ElementsAre;
using testing::TemporaryFolder;
using Path = std::filesystem::path;

constexpr const char* single = "model.safetensors";
constexpr const char* index_file = "model.safetensors.index.json";
constexpr const char* first = "model-00001-of-00002.safetensors";
constexpr const char* second = "model-00002-of-00002.safetensors";

/// A file with one-byte tensors of these names.
void write_shard(const Path& path, const std::vector<std::string>& names) {
  std::vector<TensorToWrite> tensors;
  static const std::byte value{7};
  for (const std::string& name : names) tensors.push_back({name, DType::u8, {1}, {&value, 1}});
  write_tensors(path, tensors);
}

void write_index(const Path& folder, const std::string& json) {
  write_bytes(folder / index_file, json);
}

std::string weight_map(const std::string& c_in = second) {
  return std::string(R"("weight_map":{"a":")") + first + R"(","b":")" + first + R"(","c":")" + c_in + "\"}";
}

/// Two shards with the tensors a, b and c of one byte each, and their index.
void write_sharded(const Path& folder) {
  write_shard(folder / first, {"a", "b"});
  write_shard(folder / second, {"c"});
  write_index(folder, R"({"metadata":{"total_size":3},)" + weight_map() + "}");
}

TEST(TensorDirectory, SingleFile) {
  const TemporaryFolder folder;
  write_shard(folder.path() / single, {"a", "b"});
  const auto directory = TensorDirectory::open(folder.path());
  EXPECT_EQ(directory.entries().size(), 2u);
  EXPECT_EQ(directory.entries().at("b").bytes[0], std::byte{7});
  EXPECT_THAT(directory.files(), ElementsAre(folder.path() / single));
}

TEST(TensorDirectory, ShardsByIndex) {
  const TemporaryFolder folder;
  write_sharded(folder.path());
  write_bytes(folder.path() / "adapter.safetensors", "not named by the index, and not of its form");
  const auto directory = TensorDirectory::open(folder.path());
  EXPECT_EQ(directory.entries().size(), 3u);
  EXPECT_EQ(directory.entries().at("c").bytes[0], std::byte{7});
  EXPECT_THAT(directory.files(),
              ElementsAre(folder.path() / first, folder.path() / second, folder.path() / index_file));
}

TEST(TensorDirectory, EntriesOutliveAMove) {
  const TemporaryFolder folder;
  write_sharded(folder.path());
  auto opened = TensorDirectory::open(folder.path());
  const TensorDirectory moved = std::move(opened);
  EXPECT_EQ(moved.entries().at("a").bytes[0], std::byte{7});
}

TEST(TensorDirectory, TotalSizeMayBeAbsentOrWrittenAsAFraction) {
  const TemporaryFolder folder;
  write_sharded(folder.path());
  for (const std::string metadata : {"", R"("metadata":{},)", R"("metadata":{"total_size":3.0},)"}) {
    write_index(folder.path(), object(metadata + weight_map()));
    const auto directory = TensorDirectory::open(folder.path());
    EXPECT_EQ(directory.entries().size(), 3u) << metadata;
    EXPECT_THAT(directory.remarks(), ElementsAre()) << metadata;
  }
}

// Published indices are like that.
TEST(TensorDirectory, AnIndexThatIsOffIsRemarkedOn) {
  const TemporaryFolder folder;
  write_sharded(folder.path());
  const auto remarks = [&] { return TensorDirectory::open(folder.path()).remarks(); };
  write_index(folder.path(), R"({"metadata":{"total_size":4},)" + weight_map() + "}");
  EXPECT_THAT(remarks(), ElementsAre("metadata.total_size of the index is 4; the tensors of the shards take 3 bytes"));
  write_index(folder.path(), R"({"metadata":{"total_size":"3"},)" + weight_map() + "}");
  EXPECT_THAT(remarks(),
              ElementsAre("metadata.total_size of the index is string; the tensors of the shards take 3 bytes"));
  write_index(folder.path(), object(weight_map()));
  write_shard(folder.path() / first, {"a"});
  EXPECT_THAT(remarks(), ElementsAre("the index names 1 tensor that no shard has, the first is 'b'"));
}

TEST(TensorDirectory, RealCheckpoint) {
  EXPECT_TRUE(
      TensorDirectory::open(GAINLENS_SOURCE_DIR "/data/demo/gated").entries().contains("model.embed_tokens.weight"));
}

struct Broken {
  const char* name;
  std::function<void(const Path&)> damage;  // applied to a valid sharded folder
  std::string message;
};
void PrintTo(const Broken& broken, std::ostream* out) {
  *out << broken.name;
}

void clear(const Path& folder) {
  for (const char* name : {first, second, index_file}) std::filesystem::remove(folder / name);
}
std::function<void(const Path&)> index(const std::string& json) {
  return [json](const Path& folder) { write_index(folder, json); };
}
std::function<void(const Path&)> shards(const std::vector<std::string>& in_first,
                                        const std::vector<std::string>& in_second) {
  return [=](const Path& folder) {
    write_shard(folder / first, in_first);
    write_shard(folder / second, in_second);
  };
}
std::function<void(const Path&)> only(const std::vector<std::string>& names) {
  return [names](const Path& folder) {
    clear(folder);
    for (const std::string& name : names) write_bytes(folder / name, "\x80\x02");
  };
}

std::vector<Broken> broken_folders() {
  const std::string missing =
      std::string("shard '") + second + "' (of tensor 'c') is missing from the folder; fetch it";
  return {
      {"NoWeights", only({"config.json"}), "no weights; looked for model.safetensors and model.safetensors.index.json"},
      {"OnlyPickles", only({"pytorch_model.bin", "training_args.bin"}),
       "only pickled weights ('pytorch_model.bin'), which may run any program"},
      {"PicklesSayHow", only({"b.pth", "a.pt"}), "sys.argv[1])\" model.safetensors 'a.pt' 'b.pth'"},
      {"OtherName", only({"weights.safetensors"}),
       "but 'weights.safetensors'; rename the weights to model.safetensors"},
      {"SingleIsPickle", only({single}), "model.safetensors: a pickled PyTorch checkpoint"},
      {"SingleAndIndex", [](const Path& folder) { write_shard(folder / single, {"a"}); },
       "both model.safetensors and model.safetensors.index.json"},
      {"ShardMissing", [](const Path& folder) { std::filesystem::remove(folder / second); }, missing},
      {"ShardDangling",
       [](const Path& folder) {
         std::filesystem::remove(folder / second);
         std::filesystem::create_symlink("../blobs/12", folder / second);
       },
       "a link to '../blobs/12', which does not exist"},
      {"ShardTruncated", [](const Path& folder) { std::filesystem::resize_file(folder / second, 30); },
       "the file is cut short"},
      {"ShardLeftOver", [](const Path& folder) { write_shard(folder / "model-00003-of-00003.safetensors", {"d"}); },
       "shard 'model-00003-of-00003.safetensors' lies in the folder but is not in the index"},
      {"TensorNotInIndex", shards({"a", "b"}, {"c", "d"}),
       "tensor 'd' of 'model-00002-of-00002.safetensors' is not in the index"},
      {"TensorInOtherShard", shards({"a"}, {"b", "c"}),
       "tensor 'b' should be in 'model-00001-of-00002.safetensors' but is not"},
      {"TensorInBothShards", shards({"a", "b"}, {"b", "c"}),
       "tensor 'b' is in 'model-00001-of-00002.safetensors' and in 'model-00002-of-00002.safetensors'; the index puts "
       "it in the first"},
      {"IndexNotJson", index("{"), "model.safetensors.index.json: not valid JSON"},
      {"IndexArray", index("[]"), "no weight_map; must be an object with one"},
      {"IndexWithoutMap", index("{}"), "no weight_map"},
      {"MapIsArray", index(R"({"weight_map":[]})"), "weight_map is array; must be an object"},
      {"MapIsEmpty", index(R"({"weight_map":{}})"), "weight_map is empty"},
      {"MapHoldsNumber", index(R"({"weight_map":{"a":1}})"),
       "weight_map key 'a' holds number; must be the name of a shard"},
      {"MapTwice", index(R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})"), "key 'a' appears twice"},
      {"ShardAbsolute", index(object(weight_map("/etc/passwd"))),
       "weight_map puts tensor 'c' in '/etc/passwd'; must be the name of a file"},
      {"ShardOutside", index(object(weight_map("../x.safetensors"))), "without '/' or '..'"},
      {"ShardParent", index(object(weight_map(".."))), "without '/' or '..'"},
      {"ShardWithNul", index(object(weight_map("x\\u0000.safetensors"))), "puts tensor 'c' in 'x\\x00.safetensors'"},
      {"ShardPickled", index(object(weight_map("pytorch_model-1.bin"))),
       "in 'pytorch_model-1.bin'; must be a .safetensors file"},
      {"MetadataArray", index(R"({"metadata":[],)" + weight_map() + "}"), "metadata is array; must be an object"},
  };
}

class BrokenFolder : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenFolder, IsRefusedInOneLine) {
  const TemporaryFolder folder;
  write_sharded(folder.path());
  GetParam().damage(folder.path());
  EXPECT_THAT([&] { TensorDirectory::open(folder.path()); }, refused_with(GetParam().message));
  EXPECT_THAT([&] { TensorDirectory::open(folder.path()); }, refused_with(folder.path().string()));
}

INSTANTIATE_TEST_SUITE_P(Mutants, BrokenFolder, ::testing::ValuesIn(broken_folders()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(TensorDirectory, WhatIsNoFolderIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { TensorDirectory::open(folder.path() / "lost"); }, refused_with("lost: not a folder"));
  EXPECT_THAT([&] { TensorDirectory::open(write_bytes(folder.path() / "f", "")); }, refused_with("f: not a folder"));
}

}  // namespace tensor_directory_test
}  // namespace gainlens::formats
