#include "analyses/exceedance.h"

#include "analyses/permutation.h"
#include "analyses/statistics.h"
#include "core/check.h"

#include <boost/math/distributions/beta.hpp>

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
namespace {

constexpr double tail = (1 - confidence) / 2;
static_assert(2.0 / (1 + fewest_ranked_draws) <= significance && 2.0 / fewest_ranked_draws > significance);

/// The share of which so many of all are seen below, and no more, in `tail` of all samples.
double upper_share(std::size_t seen, std::size_t all) {
  if (seen == all) return 1;
  const boost::math::beta_distribution<> beta(static_cast<double>(seen + 1), static_cast<double>(all - seen));
  return boost::math::quantile(boost::math::complement(beta, tail));
}

}  // namespace

Exceedance exceedance(double number, std::span<const double> draws) {
  ASSERT(!draws.empty(), "no draw");
  Exceedance found{
      draws.size(),
      0,
      0,
      {},
      Measured::none(fmt::format("a rank among fewer than {} draws cannot reach 5%", fewest_ranked_draws))};
  for (const double draw : draws) {
    const bool tie = is_rounding(draw - number, std::abs(draw) + std::abs(number));
    found.ties += tie ? 1 : 0;
    found.lower += !tie && draw < number ? 1 : 0;
  }
  const std::size_t higher = found.draws - found.lower - found.ties;
  found.share = {1 - upper_share(found.draws - found.lower, found.draws),
                 upper_share(found.lower + found.ties, found.draws)};
  if (found.draws < fewest_ranked_draws) return found;
  const std::size_t beyond = std::min(found.lower, higher) + found.ties + 1;
  found.p = std::min(1.0, 2 * static_cast<double>(beyond) / static_cast<double>(found.draws + 1));
  return found;
}

}  // namespace gainlens::analyses
