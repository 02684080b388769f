// What reads runs asks runfile::identify() for their kind and finds what it does in a list (cli/run_kinds.h). It names
// no kind, so a new one takes no search through the tree.
#include "architecture/repository.h"
#include "support/shared_data.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::testing {
namespace run_kinds_test {

/// The files of the kinds, by how their paths begin. Those of a kind may name it.
constexpr std::string_view files_of_kinds[] = {
    "src/runfile/run_kind.",
    // sweep
    "src/runfile/schema.h",
    "src/cli/sweep_runs.cpp",
    // recommender_sweep
    "src/runfile/attention_run.",
    "src/cli/sweep_recommenders.cpp",
    // recommenders
    "src/runfile/recommend_run",
    "src/recommend/finished_seeds.cpp",
    "src/cli/recommender_runs.cpp",
    // experiment
    "src/runfile/experiment_run.",
    "src/cli/experiment_runs.cpp",
    // interventions and patching
    "src/runfile/intervention_run.",
    "src/runfile/patching_run.",
    "src/interventions/run_interventions.cpp",
    "src/interventions/patching.cpp",
    "src/cli/intervention_runs.cpp",
    // gate_arms
    "src/runfile/gate_arms_run.",
    "src/interventions/run_gate_arms.cpp",
    "src/cli/gate_arms_command.cpp",
    // language_training
    "src/cli/train_command.cpp",
};

/// What a line names in code: a kind, or how its files are marked. Empty: nothing.
std::string kind_in(const std::string& line) {
  static const std::regex name(R"re(RunKind::\w+|\b\w+_run_format\b|\bgate_arms_format\b|)re"
                               R"re("gainlens-(sweep|recommend|recommender-sweep|experiment|interventions|patching|)re"
                               R"re(gate-arms)")re");
  const auto holds = [&](const char* text) { return line.find(text) != std::string::npos; };
  if (!holds("RunKind::") && !holds("_format") && !holds("\"gainlens-")) return {};  // expressions are slow
  const std::string code = line.substr(0, line.find("//"));
  std::smatch found;
  return std::regex_search(code, found, name) ? found.str() : std::string();
}

std::vector<std::string> places_that_name_one(const std::filesystem::path& root) {
  const auto is_one_of = [](const std::string& file, const auto& paths) {
    return std::ranges::any_of(paths, [&](std::string_view path) { return file.starts_with(path); });
  };
  std::vector<std::string> places;
  for (const SourceLine& line : lines_of(root, {".cpp", ".h"})) {
    if (line.file.starts_with("tests/") || is_one_of(line.file, files_of_kinds)) continue;
    if (!kind_in(line.text).empty()) places.push_back(line.place());
  }
  return places;
}

TEST(RunKinds, NoOtherFileNamesOne) {
  EXPECT_THAT(places_that_name_one(GAINLENS_SOURCE_DIR), ::testing::IsEmpty());
}

TEST(RunKinds, EveryFileThatMayNameOneDoes) {
  std::vector<std::string> naming;
  for (const SourceLine& line : lines_of(GAINLENS_SOURCE_DIR, {".cpp", ".h"})) {
    if (!kind_in(line.text).empty()) naming.push_back(line.file);
  }
  const auto names_one = [&](std::string_view path) {
    return std::ranges::any_of(naming, [&](const std::string& file) { return file.starts_with(path); });
  };
  for (const std::string_view path : files_of_kinds) EXPECT_TRUE(names_one(path)) << path;
}

TEST(RunKinds, ANameInCodeIsFound) {
  const TemporaryFolder root;
  for (const char* folder : {"src/cli", "src/runfile"}) std::filesystem::create_directories(root.path() / folder);
  write_file(root.path() / "src/cli/a.cpp",
             "f(run);  // RunKind::sweep\nif (kind == runfile::RunKind::patching) f();\n"
             "format == \"gainlens-gate-arms\";\nformat == gate_arms_format;\n");
  write_file(root.path() / "src/runfile/run_kind.h", "RunKind::sweep;\n");
  EXPECT_THAT(places_that_name_one(root.path()),
              ::testing::ElementsAre("src/cli/a.cpp:2", "src/cli/a.cpp:3", "src/cli/a.cpp:4"));
}

}  // namespace run_kinds_test
}  // namespace gainlens::testing
