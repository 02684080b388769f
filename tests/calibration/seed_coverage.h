#pragma once

#include "calibration/recommender_simulation.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::testing {

/// How often a test rejects and an interval holds the true value, on simulated recommenders.
struct SeedCoverage {
  std::string question;  ///< "gain", "rare minus popular", "data sets", "slope", "levels", "few items"
  std::string method;    ///< "paired t", ...
  bool stated;           ///< whether reports state its p at 5% and its interval at 95%; false for the naive methods
  std::string runs;      ///< what varies: "equal users", "own gains", "strong seeds", ...
  std::size_t seeds;
  std::size_t users;  ///< of "levels": units
  double effect;      ///< mean gain; 0: the null hypothesis is true
  std::int64_t simulations;
  double tested;               ///< share of simulations in which the test is possible
  double rejected;             ///< share of all simulations in which p <= 5%
  double covered;              ///< share of the intervals that hold the truth; NaN without an interval
  double rejected_at_1 = 0;    ///< share of all simulations in which p <= 1%
  double rejected_at_0_1 = 0;  ///< and p <= 0.1%
};

/// What differs between users and between runs, beside chance.
struct RecommenderCase {
  std::string name;
  double own_gains = 0;  ///< a user's own gain is +- this, at random; mean 0 over users
  bool by_item = false;  ///< users with the same target item share their own gain
  RunNoise noise = {};
};
/// "equal users": no own gains. "own gains": 0.7. "strong seeds": a seed changes the candidate by 0.17 (standard
/// deviation). "own gains of items": as own gains, shared by the users of a target item.
const std::vector<RecommenderCase>& recommender_cases();

/// Tests and intervals of the gain of all users.
std::vector<SeedCoverage> cover_gains(const RecommenderCase& what, std::size_t seeds, std::size_t users, double effect,
                                      std::int64_t simulations, std::uint64_t seed);
/// Users with rare targets against users with popular ones. Only the rare have the effect.
std::vector<SeedCoverage> cover_interaction(const RecommenderCase& what, std::size_t seeds, std::size_t users,
                                            double effect, std::int64_t simulations, std::uint64_t seed);
/// Six data sets of 0.5 to 1.5 times `users`, evaluated with the same seeds.
/// @param spread  a data set's own gain is +- this, at random
std::vector<SeedCoverage> cover_data_sets(const RecommenderCase& what, std::size_t seeds, std::size_t users,
                                          double effect, double spread, std::int64_t simulations, std::uint64_t seed);
/// Slope of the gain on ln(1 + target frequency). Own gains are those of target items. The gain is `effect` at
/// frequency 0 and falls to 0 at a logarithm of 3.
std::vector<SeedCoverage> cover_slopes(const RecommenderCase& what, std::size_t seeds, std::size_t users, double effect,
                                       std::int64_t simulations, std::uint64_t seed);

/// How the effect of a seed is distributed. "one in ten fails": that far below the others that the mean is 0.
enum class SeedLaw { normal, uniform, two_values, exponential, one_in_ten_fails };

/// What varies in a comparison whose parts are normal numbers: standard deviations of the mean over users in one run.
struct LevelCase {
  std::string name;
  double seed;                    ///< of a seed's effect
  double unit;                    ///< of the units' own gains
  double noise;                   ///< of what neither explains
  SeedLaw law = SeedLaw::normal;  ///< of a seed's effect
};
const std::vector<LevelCase>& level_cases();
/// Seeds that are neither bell-shaped nor uniform.
const std::vector<LevelCase>& other_seed_cases();
/// Level of the tests at 5, 1 and 0.1%, and coverage, without a gain. 100 units. With one seed: coverage of the
/// interval over users alone, for these trainings and for others. From three seeds on also how often a seed is named as
/// far from the others (the share of "rejected").
std::vector<SeedCoverage> cover_levels(const LevelCase& what, std::size_t seeds, std::int64_t simulations,
                                       std::uint64_t seed);

/// What items gain: each has its own gain, with mean 0.
enum class ItemGains { normal, uniform, two_values };
/// Level and coverage where few items have most of about 1,000 users: 1 / rank^exponent of them, 300 items. Noise and a
/// seed's effect have .3 of the deviation that the items' gains bring into the mean. Two methods: the jackknife over
/// items, and the error that counts all items alike.
/// @param effective  the number of items of equal size that would say as much
std::vector<SeedCoverage> cover_items(double effective, ItemGains gains, std::size_t seeds, std::int64_t simulations,
                                      std::uint64_t seed);

/// All rows of the table.
/// @param most_simulations  of a cell; half of it with 10 or more seeds, and half of that with 20,000 users; of
/// "levels"
///     40 times as many with up to 5 seeds, and 20 times with more; of "few items" 4 times as many
/// @param only  one question; empty: all
std::vector<SeedCoverage> seed_coverage_table(std::int64_t most_simulations, std::string_view only = {});
std::string seed_coverage_csv(const std::vector<SeedCoverage>& rows);
/// One line for each question, method, case, number of users and effect; one column for each number of seeds. Log
/// ratios of gains are left out.
std::string seed_coverage_markdown(const std::vector<SeedCoverage>& rows);

}  // namespace gainlens::testing
