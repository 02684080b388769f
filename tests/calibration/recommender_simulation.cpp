#include "calibration/recommender_simulation.h"

#include <algorithm>
#include <cmath>

namespace gainlens::testing {
namespace {

double around_zero(double half_width, Random& random) {
  return half_width * (2 * random.uniform() - 1);
}

float hit(double rate, double effect, Random& random) {
  return random.uniform() < std::clamp(rate + effect * rate * (1 - rate), 0.0, 1.0) ? 1.0f : 0.0f;
}

}  // namespace

double RateLaw::draw(Random& random) const {
  return std::pow(random.uniform(), skew);
}

analyses::PairedUsers observe(const std::vector<SimulatedUser>& users, std::size_t seeds, const RunNoise& noise,
                              Random& random) {
  analyses::PairedUsers runs{seeds, users.size(), {}, {}};
  runs.baseline.reserve(seeds * users.size());
  runs.candidate.reserve(seeds * users.size());
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    const double both = around_zero(noise.seed, random), one = around_zero(noise.arm, random);
    for (const SimulatedUser& user : users) {
      const double shared = both + around_zero(noise.seed_user, random);
      runs.baseline.push_back(hit(user.rate, shared, random));
      runs.candidate.push_back(hit(user.rate, shared + one + user.gain, random));
    }
  }
  return runs;
}

}  // namespace gainlens::testing
