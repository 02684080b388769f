// The config.json of every golden checkpoint with one key removed, null, or of another type. `inspect`, called in this
// process, must end with its findings or with one line.
#include "cli/inspect_parts.h"
#include "core/error.h"
#include "core/json.h"
#include "support/shared_data.h"

#include <gtest/gtest.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace gainlens::cli {
namespace inspect_mutants_test {

using gainlens::testing::TemporaryFolder;

const std::filesystem::path goldens = GAINLENS_SOURCE_DIR "/tests/golden/models";

/// Calls work(name, mutant) for each change of one key, also of the keys of objects inside.
void for_each_mutant(const Json& config, const std::function<void(const std::string&, const Json&)>& work) {
  const Json values = {nullptr, true, false,         -1,       0,         1.5, 9007199254740993, 1e300,
                       "x",     "",   Json::array(), {1, "x"}, {{"x", 1}}};
  for (const auto& [key, kept] : config.items()) {
    Json mutant = config;
    mutant.erase(key);
    work("without " + key, mutant);
    for (const Json& value : values) {
      if (value == kept) continue;
      mutant[key] = value;
      work(key + " = " + value.dump(), mutant);
    }
    if (!kept.is_object()) continue;
    for_each_mutant(kept, [&](const std::string& name, const Json& inner) {
      mutant[key] = inner;
      work(key + ": " + name, mutant);
    });
  }
}

struct Outcomes {
  int read = 0, refused = 0;
};

/// Inspects the folder. Every error but one line of InvalidArgument is a failure.
void inspect(const std::filesystem::path& folder, const std::string& name, Outcomes& outcomes) {
  Findings findings;
  try {
    inspect_checkpoint(folder, {.length = "", .dtype = "float32", .ignored_config_keys = {}}, {}, findings);
    ++outcomes.read;
  } catch (const InvalidArgument& error) {
    ++outcomes.refused;
    const std::string line = error.what();
    EXPECT_EQ(line.find('\n'), std::string::npos) << name << ": " << line;
    EXPECT_NE(line.find(folder.string()), std::string::npos) << name << " is refused without the file: " << line;
  } catch (const std::exception& error) {
    ADD_FAILURE() << name << ": " << error.what();
  }
}

TEST(InspectMutants, AreReadOrRefusedInOneLine) {
  Outcomes outcomes;
  int checkpoints = 0;
  for (const auto& entry : std::filesystem::directory_iterator(goldens)) {
    if (!exists(entry.path() / "config.json") || !exists(entry.path() / "model.safetensors")) continue;
    ++checkpoints;
    const TemporaryFolder folder;
    std::filesystem::copy_file(entry.path() / "model.safetensors", folder.path() / "model.safetensors");
    const Json config = read_json_file(entry.path() / "config.json", 1 << 20);
    const auto written = [&](const Json& mutant) { std::ofstream(folder.path() / "config.json") << mutant.dump(); };
    written(config);
    Outcomes unaltered;
    inspect(folder.path(), entry.path().filename().string(), unaltered);
    EXPECT_EQ(unaltered.read, 1) << entry.path().filename();
    for_each_mutant(config, [&](const std::string& name, const Json& mutant) {
      written(mutant);
      inspect(folder.path(), entry.path().filename().string() + ": " + name, outcomes);
    });
  }
  EXPECT_GE(checkpoints, 50);
  EXPECT_GT(outcomes.refused, outcomes.read);
  RecordProperty("checkpoints", checkpoints);
  RecordProperty("read", outcomes.read);
  RecordProperty("refused", outcomes.refused);
  fmt::print("{} checkpoints: {} mutants read, {} refused\n", checkpoints, outcomes.read, outcomes.refused);
}

}  // namespace inspect_mutants_test
}  // namespace gainlens::cli
