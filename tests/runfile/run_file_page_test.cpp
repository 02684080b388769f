#include "runfile/run_file_page.h"

#include "core/json.h"
#include "runfile/coordinates.h"
#include "runfile/made_run.h"
#include "runfile/schema.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::testing {
namespace run_file_page_test {

using ::testing::HasSubstr;

const std::string& page() {
  static const std::string text = read_text_file(GAINLENS_SOURCE_DIR "/docs/run-file.md");
  return text;
}

/// What stands between the two marks of a block.
std::string block(const std::string& name) {
  const std::string begin = fmt::format("<!-- {}: made from src/runfile, held to it by a test -->\n", name);
  const std::string end = fmt::format("<!-- end of {} -->\n", name);
  const std::size_t first = page().find(begin), last = page().find(end);
  if (first == std::string::npos || last == std::string::npos) return fmt::format("docs/run-file.md has no {}", begin);
  return page().substr(first + begin.size(), last - first - begin.size());
}

TEST(RunFilePage, AxesAreThoseOfTheSources) {
  EXPECT_EQ(block("axes"), axes_table()) << "paste this between the marks:\n" << axes_table();
}

TEST(RunFilePage, CoordinatesAreThoseOfTheSources) {
  EXPECT_EQ(block("coordinates"), coordinates_table()) << "paste this between the marks:\n" << coordinates_table();
}

TEST(RunFilePage, DatasetsAreThoseOfTheSources) {
  EXPECT_EQ(block("datasets"), datasets_tables()) << "paste this between the marks:\n" << datasets_tables();
}

TEST(RunFilePage, EveryDatasetHasARowOrStandsInThatOfItsMean) {
  const std::string tables = datasets_tables();
  std::ptrdiff_t variances = 0;
  for (const runfile::DatasetInfo& info : runfile::schema()) {
    if (info.name.ends_with("_var")) {
      ++variances;
      EXPECT_THAT(tables, HasSubstr(fmt::format("`, `{}` |", info.name)));
      continue;
    }
    std::string path = info.path(512);
    if (const std::size_t at = path.find("512"); at != std::string::npos) path.replace(at, 3, "<T>");
    EXPECT_THAT(tables, HasSubstr(fmt::format("| `/{}`", path)));
  }
  EXPECT_EQ(variances, 18);
  std::ptrdiff_t rows = 0;
  for (std::size_t at = 0; (at = tables.find("\n| `", at)) != std::string::npos; ++at) ++rows;
  EXPECT_EQ(rows + variances, std::ssize(runfile::schema()));
}

/// A row without a meaning has that of its dataset in /summary.
TEST(RunFilePage, ProfilesAndQueriesAreOfTheQuantitiesOfTheSummary) {
  using runfile::DatasetInfo, runfile::Group;
  const auto quantity = [](const DatasetInfo& info) {
    const std::size_t end =
        info.group == Group::queries ? info.meaning.rfind(" of each query") : info.meaning.rfind(',');
    return info.meaning.substr(0, end);
  };
  for (const DatasetInfo& info : runfile::schema()) {
    if (info.group != Group::profile && info.group != Group::queries) continue;
    for (const DatasetInfo& mean : runfile::schema()) {
      if (mean.group != Group::summary || mean.name != info.name) continue;
      EXPECT_EQ(quantity(info), quantity(mean)) << info.name;
      EXPECT_EQ(info.unit, mean.unit) << info.name;
    }
  }
}

TEST(RunFilePage, EveryAttributeOfTheRootIsExplained) {
  for (const auto& [name, text] : runfile::attributes_of_run(made_request(), "1"))
    EXPECT_THAT(page(), HasSubstr(fmt::format("| `{}` |", name)));
}

TEST(RunFilePage, EveryKeyOfTheRequestIsExplained) {
  runfile::Request request = made_request();
  request.spread = 100;
  const Json json = request.to_json();
  for (const auto& [key, value] : json.items()) EXPECT_THAT(page(), HasSubstr(fmt::format("`{}`", key)));
  EXPECT_THAT(page(), HasSubstr(fmt::format("version of the definitions of the numbers, {} today", request.version)));
}

}  // namespace run_file_page_test
}  // namespace gainlens::testing
