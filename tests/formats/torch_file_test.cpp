#include "formats/torch_file.h"

#include "formats/torch_bytes.h"

#include <cstring>

namespace gainlens::formats {
namespace torch_file_test {

using ::testing::ElementsAre;
using testing::TemporaryFolder;

const std::string six_floats = [] {
  const float numbers[6] = {1, 2, 3, 4, 5, 6};
  return std::string(reinterpret_cast<const char*>(numbers), sizeof numbers);
}();

using Entries = std::vector<std::pair<std::string, std::string>>;

/// The entries of a checkpoint whose content is a pickled value.
Entries entries_of(const std::string& value, const std::string& storage = six_floats) {
  return {{"m/data.pkl", pickle_of(value)}, {"m/byteorder", "little"}, {"m/data/0", storage}, {"m/version", "3\n"}};
}

std::vector<float> floats(const TensorEntry& entry) {
  std::vector<float> values(entry.bytes.size() / sizeof(float));
  std::memcpy(values.data(), entry.bytes.data(), entry.bytes.size());
  return values;
}

class TorchFileTest : public ::testing::Test {
 protected:
  TorchFile written(const std::string& bytes) { return TorchFile::open(write_bytes(path_, bytes)); }
  void expect_refused(const std::string& bytes, const std::string& text) {
    EXPECT_THAT(([&] {
                  const TorchFile file = written(bytes);
                  file.tensors(file.content().root(), "its content");
                }),
                refused_with(text))
        << text;
  }
  void expect_tensor_refused(const std::string& tensor, const std::string& text,
                             const std::string& storage = six_floats) {
    expect_refused(zip_bytes(entries_of(pickled_dictionary({{"w", tensor}}), storage)), "m.pth: 'w': " + text);
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "m.pth";
};

TEST_F(TorchFileTest, ReadsTheTensorsOfAStateDictionary) {
  const std::string state = pickled_dictionary(
      {{"w", pickled_tensor("0", {2, 2}, {2, 1}, 2)},
       {"row", pickled_tensor("0", {1, 3}, {9, 1})},  // the stride of one row says nothing
       {"none", pickled_tensor("0", {0, 4}, {4, 1})},
       {"p", pickled_global("torch._utils", "_rebuild_parameter") + "(" + pickled_tensor("0", {6}, {1}) + "\x88" +
                 pickled_global("collections", "OrderedDict") + ")R" + "tR"}});
  for (const bool zip64 : {false, true}) {
    const TorchFile file = written(zip_bytes(entries_of(pickled_dictionary({{"state_dict", state}})), zip64));
    const auto found = file.content().value(file.content().root(), "state_dict");
    ASSERT_TRUE(found);
    const auto tensors = file.tensors(*found, "'state_dict'");
    ASSERT_EQ(tensors.size(), 4u);
    EXPECT_THAT(tensors.at("w").shape, ElementsAre(2, 2));
    EXPECT_THAT(floats(tensors.at("w")), ElementsAre(3, 4, 5, 6));
    EXPECT_THAT(floats(tensors.at("row")), ElementsAre(1, 2, 3));
    EXPECT_TRUE(tensors.at("none").bytes.empty());
    EXPECT_THAT(floats(tensors.at("p")), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_EQ(tensors.at("w").dtype, DType::f32);
    EXPECT_EQ(tensors.at("w").name, "w");
  }
}

TEST_F(TorchFileTest, RefusesTensorsThatCannotBe) {
  expect_tensor_refused(pickled_tensor("0", {2, 2}, {1, 2}),
                        "is stored with strides [1, 2]; save it with .contiguous()");
  expect_tensor_refused(pickled_tensor("0", {7}, {1}), "needs 28 bytes from byte 0 on; its storage has 24");
  expect_tensor_refused(pickled_tensor("0", {2}, {1}, 5), "needs 8 bytes from byte 20 on; its storage has 24");
  expect_tensor_refused(pickled_tensor("0", {2}, {1}, 200), "needs 8 bytes from byte 800 on");
  expect_tensor_refused(pickled_tensor("0", {2}, {1, 1}), "2 strides for 1 dimensions");
  expect_tensor_refused(pickled_tensor("0", std::vector<int>(9, 1), std::vector<int>(9, 1)), "9 dimensions");
  expect_tensor_refused(pickled_tensor("0", {1}, {1}, 0, "ComplexFloatStorage"),
                        "holds 'torch.ComplexFloatStorage', a type that is not read");
  expect_tensor_refused("N", "is None; must be a tensor");
  expect_tensor_refused(pickled_global("os", "system") + pickled("false") + "\x85R",
                        "is an object of 'os.system'; must be a tensor");
  expect_refused(zip_bytes(entries_of(pickled_dictionary({{"w", pickled_tensor("1", {1}, {1})}}))),
                 "m.pth: no entry 'm/data/1'; the file is incomplete");
  expect_refused(zip_bytes(entries_of("]")), "its content is a list; must be a dictionary of tensors");
  expect_refused(zip_bytes(entries_of("}NNs")), "its content has the key None");
}

TEST_F(TorchFileTest, RefusesOtherFiles) {
  expect_refused(pickle_of("}"), "m.pth: in the format of PyTorch before 1.6");
  expect_refused("hello", "m.pth: not a checkpoint of torch.save");
  expect_refused("", "m.pth: not a checkpoint of torch.save");
  expect_refused(zip_bytes({{"a.txt", "x"}}), "a zip archive without 'data.pkl'");
  Entries big = entries_of("}");
  big[1].second = "big";
  expect_refused(zip_bytes(big), "m.pth: byte order 'big'; 'little' is read");
  EXPECT_THAT([&] { TorchFile::open(folder_.path() / "lost.pth"); }, refused_with("lost.pth"));
}

TEST_F(TorchFileTest, RefusesBrokenArchives) {
  const std::string good = zip_bytes(entries_of("}"));
  expect_refused(good.substr(0, good.size() - 1), "the end of the zip archive is missing");
  expect_refused(good.substr(10), "m.pth: not a checkpoint of torch.save");
  expect_refused(zip_bytes(entries_of("}"), false, 8), "entry 'm/data.pkl': is compressed");
  Entries twice = entries_of("}");
  twice.push_back(twice.back());
  expect_refused(zip_bytes(twice), "entry 'm/version': is there twice");
  std::string overlapping = good;  // the second entry of the directory leads to the first one's content
  const std::size_t first = overlapping.find("PK\x01\x02"), second = overlapping.find("PK\x01\x02", first + 4);
  ASSERT_NE(second, std::string::npos);
  overlapping.replace(second + 16, 12, overlapping, first + 16, 12);
  overlapping.replace(second + 42, 4, overlapping, first + 42, 4);
  expect_refused(overlapping, "lies upon another entry");
  std::string flipped = good;
  const std::size_t at = flipped.find(six_floats);
  ASSERT_NE(at, std::string::npos);
  flipped[at + 5] = static_cast<char>(flipped[at + 5] ^ 4);
  expect_refused(flipped, "entry 'm/data/0': its checksum (CRC-32) does not match");
}

// A file that is cut, or has one other byte, is read or refused with one line.
TEST_F(TorchFileTest, EveryDamageIsReadOrRefused) {
  for (const bool zip64 : {false, true}) {
    const std::string good =
        zip_bytes(entries_of(pickled_dictionary({{"w", pickled_tensor("0", {2, 2}, {2, 1}, 2)}})), zip64);
    int refused = 0;
    const auto open = [&](const std::string& bytes) {
      try {
        const TorchFile file = written(bytes);
        for (const auto& [name, entry] : file.tensors(file.content().root(), "its content")) floats(entry);
      } catch (const InvalidArgument& error) {
        expect_clear(error.what(), path_);
        ++refused;
      }
    };
    for (std::size_t size = 0; size < good.size(); size += 3) open(good.substr(0, size));
    for (std::size_t at = 0; at < good.size(); ++at) {
      for (const char byte : {'\0', '\xff', static_cast<char>(good[at] + 1)}) {
        std::string mutant = good;
        mutant[at] = byte;
        open(mutant);
      }
    }
    EXPECT_GT(refused, 500);
  }
}

}  // namespace torch_file_test
}  // namespace gainlens::formats
