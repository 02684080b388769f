#include "calibration/seed_coverage.h"

#include "calibration/binomial_level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace seed_coverage_test {

constexpr double least_coverage = 0.92;  // smallest coverage allowed for an interval stated as 95%
constexpr double most_rejected = 0.08;   // largest rate at which a stated test may reject a true null hypothesis

const SeedCoverage& row_of(const std::vector<SeedCoverage>& rows, const std::string& method) {
  for (const SeedCoverage& row : rows) {
    if (row.method == method) return row;
  }
  throw std::runtime_error("no row of " + method);
}

const RecommenderCase& case_of(const std::string& name) {
  for (const RecommenderCase& what : recommender_cases()) {
    if (what.name == name) return what;
  }
  throw std::runtime_error("no case " + name);
}

TEST(SeedCoverage, TheSimulatedRatesHaveTheirMean) {
  Random random(1);
  const std::vector<SimulatedUser> users(2000, {0.2, 0.5});
  const analyses::PairedUnits runs = observe(users, 20, {0, 0, 0}, random);
  double baseline = 0, candidate = 0;
  for (const double rate : seed_means(runs).baseline) baseline += rate / 20;
  for (const double rate : seed_means(runs).candidate) candidate += rate / 20;
  EXPECT_NEAR(baseline, 0.2, 0.008);    // four standard errors
  EXPECT_NEAR(candidate, 0.28, 0.009);  // 0.2 + 0.5 x 0.2 x 0.8
  double mean = 0, spread = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double rate = popular_items.draw(random);
    mean += rate / 200'000;
    spread += rate * (1 - rate) / 200'000;
  }
  EXPECT_NEAR(mean, popular_items.mean(), 0.002);
  EXPECT_NEAR(spread, popular_items.mean_spread(), 0.001);
}

TEST(SeedCoverage, EqualUsersLeaveTheSeedTestsAtTheirLevel) {
  constexpr std::int64_t simulations = 400;
  const auto rows = cover_gains(case_of("equal users"), 10, 500, 0, simulations, 1);
  for (const char* method : {"paired t", "signed ranks", "sign flips"})
    EXPECT_TRUE(is_at_level(row_of(rows, method).rejected, simulations)) << method;
  EXPECT_GT(row_of(rows, "crossed, difference").covered, least_coverage);
}

TEST(SeedCoverage, OwnGainsOfUsersAreSeenByTheCrossedErrorAlone) {
  RecommenderCase strong = case_of("own gains");
  strong.noise = {0, 0, 0};
  const auto rows = cover_gains(strong, 20, 500, 0, 300, 2);
  EXPECT_GT(row_of(rows, "paired t").rejected, most_rejected);
  EXPECT_GT(row_of(rows, "crossed, difference").covered, least_coverage);
  EXPECT_GT(row_of(rows, "seed x user bootstrap, difference").covered, least_coverage);
}

TEST(SeedCoverage, AnInteractionIsFoundAndHeld) {
  const auto rows = cover_interaction(case_of("own gains"), 10, 2000, 0.9, 60, 3);
  EXPECT_GT(row_of(rows, "crossed, log ratio").rejected, 0.8);
  EXPECT_GT(row_of(rows, "crossed, log ratio").covered, 0.85);
}

TEST(SeedCoverage, DataSetsThatDifferAreNoEvidenceOfAMeanGain) {
  const auto rows = cover_data_sets(case_of("equal users"), 6, 500, 0, 0.5, 100, 4);
  EXPECT_GT(row_of(rows, "Fisher").rejected, 0.5);
  EXPECT_LT(row_of(rows, "random effects").rejected, 0.12);
}

TEST(SeedCoverage, TheSeedFixesEverything) {
  const auto once = cover_slopes(case_of("own gains of items"), 3, 200, 0, 20, 5),
             again = cover_slopes(case_of("own gains of items"), 3, 200, 0, 20, 5);
  EXPECT_EQ(seed_coverage_csv(once), seed_coverage_csv(again));
}

TEST(SeedCoverage, TwoSeedsKeepNoLevelAndThreeDoWithTheSeedsOwnInterval) {
  const LevelCase uniform{"uniform seeds", 3, 0.9, 0.3, SeedLaw::uniform};
  const auto two = cover_levels(uniform, 2, 4000, 6), three = cover_levels(uniform, 3, 4000, 7);
  EXPECT_LT(row_of(two, "sum of variances alone").covered, 0.87);
  EXPECT_FALSE(row_of(two, "seeds and units").stated);
  EXPECT_GT(row_of(three, "sum of variances alone").rejected, 0.09);
  EXPECT_GT(row_of(three, "sum of variances alone").rejected_at_0_1, 0.015);
  EXPECT_LT(row_of(three, "seeds and units").rejected, 0.085);
  EXPECT_LT(row_of(three, "seeds and units").rejected_at_0_1, 0.005);
}

TEST(SeedCoverage, OneSeedSpeaksOfItsOwnTrainingAlone) {
  const auto rows = cover_levels({"seeds alone", 3, 0, 1}, 1, 4000, 8);
  EXPECT_NEAR(row_of(rows, "users alone, for these trainings").covered, 0.95, 0.012);  // 3.5 standard errors
  EXPECT_LT(row_of(rows, "users alone, for other trainings").covered, 0.6);
}

TEST(SeedCoverage, SeedsOfTwoValuesKeepTheLevelFromFiveOnAlone) {
  const LevelCase& two_values = other_seed_cases()[0];
  const auto three = cover_levels(two_values, 3, 4000, 9), five = cover_levels(two_values, 5, 4000, 10);
  EXPECT_NEAR(row_of(three, "seeds and units").rejected, 0.25, 0.03);
  EXPECT_FALSE(row_of(three, "seeds and units").stated);
  EXPECT_LT(row_of(five, "seeds and units").rejected, 0.08);
  EXPECT_TRUE(row_of(five, "seeds and units").stated);
}

TEST(SeedCoverage, FailedTrainingsBreakTheLevelAndAreNamedWhereTheyShow) {
  const auto rows = cover_levels(other_seed_cases()[3], 5, 4000, 11);
  EXPECT_EQ(row_of(rows, "seeds and units").runs, "one training in ten fails");
  EXPECT_GT(row_of(rows, "seeds and units").rejected, 0.4);  // all five are whole in 59%
  EXPECT_FALSE(row_of(rows, "seeds and units").stated);
  EXPECT_GT(row_of(rows, "a seed is named as far").rejected, 0.3);  // one of the five fails in 33%
  const auto normal = cover_levels(level_cases()[1], 5, 4000, 12);
  EXPECT_TRUE(is_at_level(row_of(normal, "a seed is named as far").rejected, 4000));
}

TEST(SeedCoverage, FewItemsKeepTheLevelWithTheJackknife) {
  for (const double effective : {5.0, 16.0}) {
    const auto rows = cover_items(effective, ItemGains::normal, 3, 1500, 13);
    EXPECT_GT(row_of(rows, "items alike (not used)").rejected, 0.085) << effective;
    EXPECT_LT(row_of(rows, "jackknife over items").rejected, 0.08) << effective;
    EXPECT_GT(row_of(rows, "jackknife over items").tested, 0.99) << effective;
  }
}

/// The cells of a line of the stored table. A comma inside quotes separates nothing.
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

/// Standard error of a simulated rate.
double error_of(double rate, double simulations) {
  return std::sqrt(rate * (1 - rate) / simulations);
}

/// What the reports state is based on the table of the documentation.
TEST(SeedCoverage, StatedIntervalsAndTestsOfTheStoredTableHoldTheirLevel) {
  std::ifstream file(std::filesystem::path(GAINLENS_SOURCE_DIR) / "docs/analyses/seed-coverage.csv");
  ASSERT_TRUE(file);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line + "\n", seed_coverage_csv({}));
  std::size_t judged = 0, naive = 0;
  while (std::getline(file, line)) {
    const auto cells = cells_of(line);
    ASSERT_EQ(cells.size(), 13u) << line;
    if (cells[6] != "yes") {
      ++naive;
      continue;
    }
    ++judged;
    const double simulations = std::stod(cells[7]);
    EXPECT_LE(cells[5] == "0" ? std::stod(cells[9]) : 0, most_rejected + error_of(most_rejected, simulations)) << line;
    EXPECT_GE(cells[10].empty() ? 1 : std::stod(cells[10]), least_coverage - error_of(least_coverage, simulations))
        << line;
  }
  EXPECT_GE(judged, 100u);
  EXPECT_GE(naive, 100u);
}

}  // namespace seed_coverage_test
}  // namespace gainlens::testing
