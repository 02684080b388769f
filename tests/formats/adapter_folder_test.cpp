#include "formats/adapter_folder.h"

#include "core/error.h"
#include "formats/safetensors_bytes.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <map>
#include <string>

namespace gainlens::formats {
namespace adapter_folder_test {

using ::testing::HasSubstr;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;
using Path = std::filesystem::path;

Path write_adapter(const Path& folder, const std::string& config) {
  std::filesystem::create_directories(folder);
  write_bytes(folder / adapter_config_name, config);
  return folder;
}

TEST(AdapterFolder, AFolderIsAnAdapterIfItHasItsConfigurationAndNoModel) {
  const TemporaryFolder folder;
  EXPECT_EQ(find_adapter(folder.path()), std::nullopt);
  EXPECT_EQ(find_adapter(folder.path() / "none"), std::nullopt);
  const Path adapter = write_adapter(folder.path() / "adapter", "{}");
  EXPECT_EQ(find_adapter(adapter), adapter);
  write_bytes(adapter / "config.json", "{}");  // some trainers put that of the base beside the adapter
  EXPECT_EQ(find_adapter(adapter), adapter);
  write_bytes(adapter / "model.safetensors", "");
  EXPECT_THAT([&] { find_adapter(adapter); }, ThrowsMessage<InvalidArgument>(HasSubstr("either could be meant")));
  const Path cached = write_adapter(folder.path() / "models--a--b" / "snapshots" / "c1", "{}");
  EXPECT_EQ(find_adapter(folder.path() / "models--a--b"), cached);
}

TEST(AdapterFolder, TheBaseIsThatOfTheConfiguration) {
  const TemporaryFolder folder;
  const Path model = folder.path() / "model", cached = folder.path() / "models--a--b" / "snapshots" / "c1";
  for (const Path& at : {model, cached}) {
    std::filesystem::create_directories(at);
    write_bytes(at / "config.json", "{}");
  }
  const Environment environment = [&](const char* name) {
    return name == std::string("HF_HUB_CACHE") ? std::optional(folder.path().string()) : std::nullopt;
  };
  const auto base = [&](const std::string& named) {
    return adapter_base(write_adapter(folder.path() / "adapter", "{\"base_model_name_or_path\": \"" + named + "\"}"),
                        environment);
  };
  EXPECT_EQ(base(model), model);
  EXPECT_EQ(base("a/b"), cached);
  write_bytes(folder.path() / "model.gguf", "");
  EXPECT_EQ(base(folder.path() / "model.gguf"), folder.path() / "model.gguf");
  const auto refused = [&](const std::string& named, const std::string& reason) {
    EXPECT_THAT([&] { base(named); }, ThrowsMessage<InvalidArgument>(HasSubstr(reason))) << named;
  };
  std::filesystem::create_directories(folder.path() / "adapter" / "own");
  write_bytes(folder.path() / "adapter" / "own" / "config.json", "{}");
  EXPECT_EQ(base("own"), folder.path() / "adapter" / "own");  // in its own folder
  EXPECT_EQ(base("../model"), folder.path() / "adapter" / "../model");
  refused("", "'base_model_name_or_path' is missing");
  refused("nowhere/to/be/found", "no such folder");
  refused(folder.path() / "lost", "no such folder");
  refused("a/c", "no such model in the cache");
  refused(write_adapter(folder.path() / "other", "{}"), "is an adapter itself");
  const auto of_config = [&](const std::string& config, const std::string& reason) {
    write_adapter(folder.path() / "adapter", config);
    EXPECT_THAT([&] { adapter_base(folder.path() / "adapter", environment); },
                ThrowsMessage<InvalidArgument>(HasSubstr(reason)));
  };
  of_config("[]", "is not a JSON object");
  of_config("{}", "'base_model_name_or_path' is missing");
  of_config("{\"base_model_name_or_path\": 5}", "is 5; it must be text");
}

TEST(AdapterFolder, APipeInPlaceOfItsConfigurationIsRefused) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder.path() / adapter_config_name).c_str(), 0600), 0);
  EXPECT_THAT([&] { find_adapter(folder.path()); }, ThrowsMessage<InvalidArgument>(HasSubstr("is no regular file")));
}

}  // namespace adapter_folder_test
}  // namespace gainlens::formats
