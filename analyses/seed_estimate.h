#pragma once

#include "analyses/measured.h"
#include "core/json.h"

#include <string>
#include <vector>

namespace gainlens::analyses {

/// An estimate from each seed of an arm, over the same users.
struct SeedEstimate {
  Measured value = Measured::none("not computed");  ///< mean over seeds
  std::vector<Measured> seeds;
  std::vector<Maybe<Interval>> seed_intervals;          ///< 95%, over users, with this model
  Measured deviation = Measured::none("not computed");  ///< over seeds, ddof 1; missing with one seed
  /// 95% of the mean. From three seeds on: over other trainings and other users (crossed_estimate()). With fewer: over
  /// other users alone, with these models.
  Maybe<Interval> interval = Maybe<Interval>::none("not computed");
};

/// An estimate of all seeds, of every user and without each group of users. NaN: it does not exist.
struct Replicates {
  std::vector<double> values;                ///< [seed], at least one
  std::vector<std::vector<double>> without;  ///< [seed][group]; no group: there is no interval
  std::size_t entering = 0;                  ///< groups that the estimate depends on; 0: all
};

/// @param missing      why a value may not exist
/// @param no_interval  why no interval is given; empty: it is
/// @param least, most  bounds of the estimate
SeedEstimate over_seeds(const Replicates& found, const std::string& missing, const std::string& no_interval,
                        double least, double most);

OrderedJson to_json(const SeedEstimate& estimate);

}  // namespace gainlens::analyses
