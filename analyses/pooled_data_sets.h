#pragma once

#include "analyses/crossed_estimate.h"
#include "analyses/measured.h"
#include "analyses/options.h"
#include "analyses/sign_tests.h"
#include "core/json.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// Fisher's method: -2 sum ln p is chi-squared with 2k degrees of freedom if all null hypotheses hold and the p are
/// independent. It forgets the signs, and one data set with a tiny p decides.
struct FisherTest {
  double chi_squared;
  double degrees_of_freedom;
  double p;
};
/// @param p  two-sided, each in [0, 1]. A p of 0 counts as the smallest positive number.
FisherTest fisher(std::span<const double> p);

/// Stouffer's method with signs: the sum of k normal scores / sqrt(k).
struct StoufferTest {
  double z;
  double p;  ///< two-sided
};
/// @param p      two-sided, as for fisher
/// @param signs  of the differences: positive, negative or 0
StoufferTest stouffer(std::span<const double> p, std::span<const double> signs);

/// The mean effect over data sets, for data sets as a sample. tau^2 by DerSimonian and Laird 1986, interval by Hartung
/// and Knapp 2001, with their factor never below 1.
struct RandomEffects {
  double mean;
  double between_variance;  ///< tau^2, of true effects over data sets
  double heterogeneity_q;   ///< Cochran's Q
  double heterogeneity_p;   ///< of Q, chi-squared with k - 1 degrees of freedom
  double error;
  double degrees_of_freedom;  ///< k - 1
  Interval interval;          ///< 95%, Student
  double p;                   ///< two-sided, for a mean of 0
};
/// Missing with fewer than two data sets.
/// @param estimates  one for each data set, each with an error above 0
Maybe<RandomEffects> random_effects(std::span<const Estimate> estimates);

/// The differences of the runs of a data set. Equal seed numbers mean the same seed in all data sets.
struct SeededDifferences {
  std::vector<std::uint64_t> seeds;  ///< distinct
  std::vector<double> differences;   ///< [seed] candidate - baseline
};
/// Flips the sign of a seed in all data sets together, because one seed may move them all alike. The statistic is the
/// sum over data sets of mean difference / root mean square difference. That scale is the same for every pattern.
SignedTest joint_flips(std::span<const SeededDifferences> data_sets, const Resampling& resampling);
/// Mean over pairs of data sets of Pearson's r over their common seeds. Fisher's and Stouffer's p need it to be 0.
Measured seed_correlation(std::span<const SeededDifferences> data_sets);

/// One metric of one backbone on one data set.
struct DataSetGain {
  std::string name;
  SeededDifferences runs;
  Measured naive_p;                 ///< paired t over seeds
  Maybe<CrossedEstimate> relative;  ///< log ratio over seeds and users
};

/// One metric over all data sets. `naive` uses the paired t of the seeds, `crossed` the p over seeds and users.
struct PooledDataSets {
  std::vector<std::string> names;
  std::size_t fewest_seeds;            ///< of a data set
  std::vector<Measured> naive_holm;    ///< [data set] naive p after Holm's correction
  std::vector<Measured> crossed_holm;  ///< [data set]
  Maybe<FisherTest> naive_fisher;      ///< the paper's
  Maybe<StoufferTest> naive_stouffer;
  Maybe<StoufferTest> crossed_stouffer;
  Maybe<RandomEffects> relative_gain;  ///< mean log ratio over data sets
  SignedTest flips;
  Measured seed_correlation;
};

/// Source: docs/inference.md, "Pooled over data sets".
/// @param data_sets  at least one
PooledDataSets pool_data_sets(std::span<const DataSetGain> data_sets, const Resampling& resampling = {});

OrderedJson to_json(const PooledDataSets& pooled);

}  // namespace gainlens::analyses
