#include "calibration/coverage.h"

#include "core/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gainlens::testing {
namespace coverage_test {

using ::testing::HasSubstr;

constexpr double least_coverage = 0.92;  // smallest coverage allowed for an interval stated as 95%

const Coverage& row_of(const std::vector<Coverage>& rows, const std::string& method, const std::string& number) {
  for (const Coverage& row : rows) {
    if (row.method == method && row.number == number) return row;
  }
  throw std::runtime_error("no row of " + method + ", " + number);
}

TEST(Coverage, StudentIsExactAndNeighboursShortenIt) {
  const auto apart = cover_means(5, 0, 4000, 1), alike = cover_means(5, neighbour_correlation, 4000, 1);
  EXPECT_NEAR(row_of(apart, "Student", "mean over chunks").covered, 0.95, 0.015);
  EXPECT_NEAR(row_of(apart, "Student, of the equivalence test", "mean over chunks").covered, 0.90, 0.02);
  EXPECT_LT(row_of(alike, "Student", "mean over chunks").covered, 0.91);
}

TEST(Coverage, PercentilesOfThreeChunksAreNo95Percent) {
  const auto rows = cover_correlations(3, false, 0.1, 0, 400, 2);
  EXPECT_LT(row_of(rows, "percentile bootstrap of chunks (not used)", "Pearson").covered, 0.8);
  EXPECT_GT(row_of(rows, "text left out", "Pearson").covered, least_coverage);
  EXPECT_GT(row_of(rows, "text left out", "Pearson").stated, 0.99);
}

TEST(Coverage, ChangesBetweenLengthsThatShareText) {
  for (const Coverage& row : cover_changes(5, 0, 1500, 3)) {
    EXPECT_GT(row.covered, least_coverage) << row.method << ", " << row.number;
    EXPECT_EQ(row.stated, 1) << row.method << ", " << row.number;
  }
}

TEST(Coverage, NoIntervalOverLayersHoldsWhatItStates) {
  const auto alike = cover_layers(32, 0, layer_correlation, 400, 4), unequal = cover_layers(20, 2, 0, 400, 5);
  EXPECT_LT(row_of(alike, "layers left out, Student (not used)", "Pearson, sizes 0").covered, 0.88);
  EXPECT_LT(row_of(alike, "layers left out, Satterthwaite (not used)", "Pearson, sizes 0").covered, least_coverage);
  EXPECT_LT(row_of(unequal, "layers left out, Student (not used)", "Pearson, sizes 2").covered, least_coverage);
}

TEST(Coverage, NoIntervalOfAMeanAllowsForNeighbours) {
  const auto rows = cover_alike_chunks(8, 0.5, 1000, 7);
  for (const char* method : {"self-normalised (not used)", "Student with an inflated variance (not used)"})
    EXPECT_LT(row_of(rows, method, "mean over chunks").covered, least_coverage - 0.02) << method;
}

TEST(Coverage, RulingsOverSkewedDocumentsHoldTheirLevel) {
  const auto rows = cover_rulings(30, 1.5, 2000, 8);
  for (const char* number : {"lognormal(1.5), tail downwards: worse", "lognormal(1.5), tail upwards: not worse"}) {
    const Coverage &alone = row_of(rows, "ruling over documents, Student alone (not used)", number),
                   &ruled = row_of(rows, "ruling over documents", number);
    EXPECT_GT(1 - alone.covered, 0.1) << number;
    EXPECT_LT(ruled.stated * (1 - ruled.covered), 0.04) << number;
  }
  EXPECT_GT(row_of(cover_rulings(30, 0, 1000, 9), "ruling over documents", "normal, tail upwards: not worse").stated,
            0.9);
}

TEST(Coverage, RandomHeadsOfTwoModesKeepTheLevelByRank) {
  for (const double hits : {0.1, 0.25}) {
    const std::string law = fmt::format("{:g}% of the draws hit a vital head", 100 * hits);
    EXPECT_LT(
        row_of(cover_random_heads(5, hits, 1000, 10), "random heads: Student of their mean (not used)", law).covered,
        0.85);
    const auto rows = cover_random_heads(39, hits, 1000, 11);
    EXPECT_GE(row_of(rows, "random heads: p of one among them", law).covered, 0.93);
    for (const char* place : {", number in the lower mode", ", number between the modes"})
      EXPECT_GE(row_of(rows, "random heads: share below a number", law + place).covered, 0.94) << place;
  }
  // Five draws allow no p.
  EXPECT_EQ(row_of(cover_random_heads(5, 0, 10, 12), "random heads: p of one among them", "normal draws").stated, 0);
}

/// The cells of a line of the stored table, in which no field holds a quote or a line break.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells = {""};
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

/// The smallest allowed numbers of chunks and layers are based on the table of the documentation.
TEST(Coverage, WhatIsStatedInTheStoredTableMissesIn8PercentAtMost) {
  std::ifstream file(std::filesystem::path(GAINLENS_SOURCE_DIR) / "docs/analyses/coverage.csv");
  ASSERT_TRUE(file);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line + "\n", coverage_csv({}));
  std::size_t judged = 0;
  while (std::getline(file, line)) {
    const auto cells = cells_of(line);
    ASSERT_EQ(cells.size(), 8u) << line;
    if (cells[0].ends_with("(not used)") || cells[0].ends_with("chunks as independent")) continue;
    if (cells[4] != "0" || cells[5] == "0.9" || cells[7].empty()) continue;
    // At most this share of all runs print an interval that misses the true value: 8% for 95%, and 4% for one side.
    const double most = (1 - least_coverage) * (1 - std::stod(cells[5])) / 0.05;
    EXPECT_LE(std::stod(cells[6]) * (1 - std::stod(cells[7])), most) << line;
    ++judged;
  }
  EXPECT_GE(judged, 30u);
}

}  // namespace coverage_test
}  // namespace gainlens::testing
