#include "formats/hub_cache.h"

#include "formats/safetensors_bytes.h"

#include <map>

namespace gainlens::formats {
namespace hub_cache_test {

using testing::TemporaryFolder;
using Path = std::filesystem::path;

Environment with(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

/// The cache of one model, as a download makes it.
Path write_model(const Path& hub, const std::string& commit = "abc1") {
  const Path cache = hub / "models--Qwen--Qwen3-0.6B";
  for (const Path& folder : {cache / "blobs", cache / "refs", cache / "snapshots" / commit})
    std::filesystem::create_directories(folder);
  write_bytes(cache / "blobs" / "c0ffee", "{}");
  write_bytes(cache / "refs" / "main", commit);
  std::filesystem::create_symlink("../../blobs/c0ffee", cache / "snapshots" / commit / "config.json");
  return cache;
}

TEST(HubCache, TheFolderIsThatOfTheFirstVariableThatIsSet) {
  std::map<std::string, std::string> variables;
  const auto folder = [&] { return hub_cache_folder(with(variables)); };
  EXPECT_EQ(folder(), std::nullopt);
  variables["HOME"] = "/h";
  EXPECT_EQ(folder(), "/h/.cache/huggingface/hub");
  variables["XDG_CACHE_HOME"] = "/x";
  EXPECT_EQ(folder(), "/x/huggingface/hub");
  variables["HF_HOME"] = "~/face";
  EXPECT_EQ(folder(), "/h/face/hub");
  variables["HUGGINGFACE_HUB_CACHE"] = "/old";
  EXPECT_EQ(folder(), "/old");
  variables["HF_HUB_CACHE"] = "/new";
  EXPECT_EQ(folder(), "/new");
  variables["HF_HUB_CACHE"] = "";
  EXPECT_EQ(folder(), "/old");
}

TEST(HubCache, AModelIsFoundByItsName) {
  const TemporaryFolder folder;
  const Path cache = write_model(folder.path());
  const Environment environment = with({{"HF_HUB_CACHE", folder.path()}});
  EXPECT_EQ(locate_checkpoint("Qwen/Qwen3-0.6B", environment), cache / "snapshots" / "abc1");
  EXPECT_EQ(locate_checkpoint(folder.path(), environment), folder.path());
  EXPECT_EQ(locate_checkpoint("no-slash", environment), "no-slash");
  EXPECT_EQ(locate_checkpoint("/lost/folder", environment), "/lost/folder");
}

TEST(HubCache, AModelThatIsNotThereComesWithTheCommandThatFetchesIt) {
  const TemporaryFolder folder;
  const Environment environment = with({{"HF_HUB_CACHE", folder.path()}});
  EXPECT_THAT(
      [&] { locate_checkpoint("google/gemma-3-270m", environment); },
      refused_with("google/gemma-3-270m: no such folder, and no such model in the cache of the Hugging Face "
                   "Hub, " +
                   folder.path().string() + "; gainlens downloads nothing: run `hf download google/gemma-3-270m`"));
  EXPECT_THAT([&] { locate_checkpoint("google/gemma-3-270m", with({})); }, refused_with("HOME is not set"));
}

TEST(HubCache, AFolderOfTheFirstPartHidesNoName) {
  const TemporaryFolder folder;
  const Path cache = write_model(folder.path()), old = std::filesystem::current_path();
  std::filesystem::create_directories(folder.path() / "here" / "Qwen");
  std::filesystem::current_path(folder.path() / "here");
  const Environment environment = with({{"HF_HUB_CACHE", folder.path()}});
  EXPECT_EQ(locate_checkpoint("Qwen/Qwen3-0.6B", environment), cache / "snapshots" / "abc1");
  EXPECT_THAT([&] { locate_checkpoint("Qwen/Qwen3-0.7B", environment); },
              refused_with("Qwen/Qwen3-0.7B: no such folder, and no such model in the cache of the Hugging Face Hub, " +
                           folder.path().string() +
                           "; correct the path, or fetch the model: gainlens downloads nothing: run `hf download "
                           "Qwen/Qwen3-0.7B`"));
  EXPECT_EQ(locate_checkpoint("Qwen/Qwen3-0.6B", with({})), "Qwen/Qwen3-0.6B");
  std::filesystem::current_path(old);
}

TEST(HubCache, NamesThatLeadElsewhereAreNoNames) {
  const TemporaryFolder folder;
  write_model(folder.path());
  const Environment environment = with({{"HF_HUB_CACHE", folder.path() / "inner"}});
  for (const char* name : {"../Qwen", "a/..", "..", "a/b/c", "Qwen/..Qwen3", "a--b/c", "a/b--c", "-a/b", "a/b.", "/a",
                           "a/", "a b/c", "a/b\n", "a/b;c", "~/b"}) {
    EXPECT_FALSE(is_hub_name(name)) << name;
    EXPECT_EQ(locate_checkpoint(name, environment), name);
  }
  for (const char* name : {"Qwen/Qwen3-0.6B", "a/b", "openai-community/gpt2", "a_b/c.d-e_f"})
    EXPECT_TRUE(is_hub_name(name)) << name;
}

TEST(HubCache, DownloadsThatHaveNotFinishedAreRefused) {
  const TemporaryFolder folder;
  const Path cache = write_model(folder.path());
  const Environment environment = with({{"HF_HUB_CACHE", folder.path()}});
  const auto locate = [&] { locate_checkpoint("Qwen/Qwen3-0.6B", environment); };
  write_bytes(cache / "blobs" / "d00d.incomplete", "half");
  EXPECT_THAT(locate, refused_with("no weights in this snapshot, and blobs holds a download that has not finished; "
                                   "gainlens downloads nothing: run `hf download "
                                   "Qwen/Qwen3-0.6B` again"));
  std::filesystem::create_symlink("../../blobs/c0ffee", cache / "snapshots" / "abc1" / "model-1.safetensors");
  EXPECT_NO_THROW(locate());  // what is left of another download
  std::filesystem::create_symlink("../../blobs/d00d", cache / "snapshots" / "abc1" / "model.safetensors");
  EXPECT_THAT(locate, refused_with("a file of this snapshot is missing in blobs"));
  std::filesystem::remove_all(cache / "snapshots" / "abc1");
  EXPECT_THAT(locate, refused_with("a cache folder without snapshots"));
}

}  // namespace hub_cache_test
}  // namespace gainlens::formats
