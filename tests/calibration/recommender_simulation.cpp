#include "calibration/recommender_simulation.h"

#include <algorithm>
#include <cmath>

namespace gainlens::testing {
namespace {

double around_zero(double half_width, double uniform) {
  return half_width * (2 * uniform - 1);
}

/// Bell-shaped, with the standard deviation of a uniform number in +-half_width.
double bell(double half_width, Random& random) {
  double sum = 0;
  for (int i = 0; i < 3; ++i) sum += around_zero(half_width, random.uniform());
  return sum / std::sqrt(3.0);
}

/// Three uniform numbers of 21 bits each, from one draw: the simulation draws millions.
struct ThreeUniforms {
  explicit ThreeUniforms(Random& random) : bits(random.bits()) {}
  double take() {
    const auto number = static_cast<double>(bits & 0x1fffff);
    bits >>= 21;
    return (number + 0.5) * 0x1.0p-21;
  }
  std::uint64_t bits;
};

double hit(double rate, double effect, double uniform) {
  return uniform < std::clamp(rate + effect * rate * (1 - rate), 0.0, 1.0) ? 1.0 : 0.0;
}

}  // namespace

double RateLaw::draw(Random& random) const {
  return std::pow(random.uniform(), skew);
}

analyses::PairedUnits observe(const std::vector<SimulatedUser>& users, std::size_t seeds, const RunNoise& noise,
                              Random& random) {
  analyses::PairedUnits runs{seeds, users.size(), {}, {}};
  runs.baseline.reserve(seeds * users.size());
  runs.candidate.reserve(seeds * users.size());
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    const double both = around_zero(noise.seed, random.uniform()), one = bell(noise.arm, random);
    for (const SimulatedUser& user : users) {
      ThreeUniforms uniforms(random);
      const double shared = both + around_zero(noise.seed_user, uniforms.take());
      runs.baseline.push_back(hit(user.rate, shared, uniforms.take()));
      runs.candidate.push_back(hit(user.rate, shared + one + user.gain, uniforms.take()));
    }
  }
  return runs;
}

}  // namespace gainlens::testing
