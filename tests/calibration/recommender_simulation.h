#pragma once

#include "analyses/paired_units.h"
#include "core/random.h"

#include <cstddef>
#include <vector>

namespace gainlens::testing {

/// A user of simulated recommenders. In each run the target is hit with a probability near `rate`; in the candidate arm
/// it is rate + gain x rate (1 - rate). The gain is the user's own and the same in every run.
struct SimulatedUser {
  double rate;
  double gain;
};

/// How the runs differ. All effects have mean 0 and act like a gain.
struct RunNoise {
  double seed = 0.05;       ///< a seed's effect on both of its runs: uniform, half width
  double seed_user = 0.05;  ///< an effect on one user in both runs of a seed: uniform, half width
  /// A seed's effect on the candidate alone: bell-shaped (three uniform numbers added up), with the standard deviation
  /// of a uniform number of this half width.
  double arm = 0.1;
};

/// Hits at 10 of each user in each run.
analyses::PairedUnits observe(const std::vector<SimulatedUser>& users, std::size_t seeds, const RunNoise& noise,
                              Random& random);

/// A stratum of users: most are hard to serve and a few are easy. Rates are u^skew with u uniform.
struct RateLaw {
  double skew;

  double draw(Random& random) const;
  double mean() const { return 1 / (skew + 1); }
  double mean_spread() const { return 1 / (skew + 1) - 1 / (2 * skew + 1); }  ///< of rate (1 - rate)
};
inline constexpr RateLaw rare_items{24};    // 4% hits
inline constexpr RateLaw popular_items{8};  // 11% hits
inline constexpr double rare_share = 0.4;   // of the users, so that 8.3% of all targets are hit

}  // namespace gainlens::testing
