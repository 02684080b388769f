// What trains, ranks, stores and shows recommenders knows the contract of a backbone (recommend/backbone.h), and none
// of its implementations.
#include "architecture/repository.h"
#include "support/shared_data.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace backbones_test {

bool names_backbone(const std::string& text) {
  return std::regex_match(text, std::regex("sasrec|bert4rec|hstu"));
}

/// The code of a line: without comments, and without texts for readers. The names of backbones stay, as do included
/// files.
std::string code_of(const std::string& line) {
  static const std::regex text(R"re("([^"\\]|\\.)*")re");
  if (std::regex_search(line, std::regex(R"(^\s*#\s*include)"))) return line;
  std::string code, rest = line;
  for (std::smatch found; std::regex_search(rest, found, text); rest = found.suffix())
    code += found.prefix().str() + (names_backbone(found.str().substr(1, found.length() - 2)) ? found.str() : "\"\"");
  code += rest;
  return code.substr(0, code.find("//"));
}

/// The places of the program that name a backbone in code.
std::vector<std::string> places_that_name_one(const std::filesystem::path& root) {
  const auto is_program = [](const std::string& file) {
    return file.starts_with("src/") || file.starts_with("bench/");
  };
  const auto may = [](const std::string& file) {
    return file.starts_with("src/recommend/sasrec") || file.starts_with("src/recommend/hstu") ||
           file == "src/recommend/backbones.cpp" || file == "src/recommend/backbone_keys.cpp";
  };
  std::vector<std::string> places;
  for (const SourceLine& line : lines_of(root, {".cpp", ".h"})) {
    if (!is_program(line.file) || may(line.file)) continue;
    if (std::regex_search(code_of(line.text), std::regex("sasrec|bert4rec|hstu", std::regex::icase)))
      places.push_back(line.place());
  }
  return places;
}

TEST(Backbones, NoOtherFileNamesOne) {
  EXPECT_THAT(places_that_name_one(GAINLENS_SOURCE_DIR), ::testing::IsEmpty());
}

TEST(Backbones, ANameInCodeIsFound) {
  const TemporaryFolder root;
  for (const char* folder : {"src/cli", "src/recommend"}) std::filesystem::create_directories(root.path() / folder);
  write_file(root.path() / "src/cli/a.cpp",
             "f(\"SASRec is a model\");  // SASRec\nSasRec model;\nopen(\"bert4rec\");\n"
             "#include \"recommend/sasrec.h\"\n");
  write_file(root.path() / "src/recommend/sasrec.h", "class SasRec;\n");
  EXPECT_THAT(places_that_name_one(root.path()),
              ::testing::ElementsAre("src/cli/a.cpp:2", "src/cli/a.cpp:3", "src/cli/a.cpp:4"));
}

}  // namespace backbones_test
}  // namespace gainlens::testing
