#include "analyses/sign_tests.h"

#include "analyses/permutation.h"
#include "analyses/statistics.h"
#include "core/check.h"
#include "core/random.h"

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
namespace {

constexpr double flip_rounding = 1e-9;  // of the sum of |terms|: the same sum in another order counts as a tie

std::vector<double> without_zeros(std::span<const double> differences) {
  std::vector<double> others;
  for (const double difference : differences) {
    ASSERT(std::isfinite(difference), "a difference of {}", difference);
    if (difference != 0) others.push_back(difference);
  }
  return others;
}

/// A test without its p. The two patterns in which all signs agree are the most extreme ones.
SignedTest untested(double statistic, std::size_t pairs, std::size_t all) {
  return {.statistic = statistic,
          .pairs = pairs,
          .zeros = all - pairs,
          .arrangements = std::min(std::exp2(static_cast<double>(pairs)), 1e300),
          .min_p = pairs == 0 ? 1.0 : std::exp2(1 - static_cast<double>(pairs)),
          .p = Measured::none("not tested yet"),
          .exact = true};
}

void decide(SignedTest& test, double p) {
  if (test.min_p <= significance) {
    test.p = std::min(1.0, p);
    return;
  }
  const std::string patterns =
      test.pairs == 0 ? "1 pattern" : fmt::format("{:.0f} patterns", test.arrangements);  // few, or it were testable
  test.p = Measured::none(fmt::format("not testable: with {} of signs the smallest possible p is {:.2g}, above {:g}",
                                      patterns, test.min_p, significance));
}

std::vector<double> ranks_of_size(const std::vector<double>& differences) {
  std::vector<double> sizes;
  sizes.reserve(differences.size());
  for (const double difference : differences) sizes.push_back(std::abs(difference));
  return average_ranks(sizes);
}

/// Two-sided p of a sum of ranks, from the distribution over all patterns of signs. Ranks end in .0 or .5, so that
/// twice a rank is a whole number.
double exact_rank_p(const std::vector<double>& ranks, double sum) {
  std::vector<double> probability = {1};  // [twice the sum of the ranks with a positive sign]
  for (const double rank : ranks) {
    const auto step = static_cast<std::size_t>(std::lround(2 * rank));
    probability.resize(probability.size() + step, 0.0);
    for (std::size_t at = probability.size(); at-- > 0;)
      probability[at] = (probability[at] + (at >= step ? probability[at - step] : 0)) / 2;
  }
  const auto observed = static_cast<std::size_t>(std::lround(2 * sum));
  double below = 0, above = 0;
  for (std::size_t at = 0; at < probability.size(); ++at) {
    if (at <= observed) below += probability[at];
    if (at >= observed) above += probability[at];
  }
  return 2 * std::min(below, above);
}

double normal_rank_p(const std::vector<double>& ranks, double sum) {
  double mean_sum = 0, variance = 0;  // of sums of rank times a fair coin; squares of shared ranks correct for ties
  for (const double rank : ranks) {
    mean_sum += rank / 2;
    variance += rank * rank / 4;
  }
  const double z = std::abs(sum - mean_sum) / std::sqrt(variance);
  return 2 * boost::math::cdf(boost::math::complement(boost::math::normal(), z));
}

double sum_of(const std::vector<double>& terms) {
  double sum = 0;
  for (const double term : terms) sum += term;
  return sum;
}

/// The sums of all patterns of signs.
std::vector<double> sums_of_patterns(std::span<const double> terms) {
  std::vector<double> sums = {0};
  for (const double term : terms) {
    const std::size_t before = sums.size();
    sums.insert(sums.end(), sums.begin(), sums.end());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += i < before ? term : -term;
  }
  return sums;
}

/// Share of all patterns whose |sum| is at least `bound`. A pattern is one of each half of the terms: with the sums of
/// one half in order, those that complete a sum of the other half are found without trying them all.
double share_of_flips(std::span<const double> terms, double bound) {
  if (bound <= 0) return 1;
  const std::vector<double> left = sums_of_patterns(terms.first(terms.size() / 2));
  std::vector<double> right = sums_of_patterns(terms.subspan(terms.size() / 2));
  std::sort(right.begin(), right.end());
  double extreme = 0;
  for (const double sum : left) {
    extreme += static_cast<double>(right.end() - std::lower_bound(right.begin(), right.end(), bound - sum));
    extreme += static_cast<double>(std::upper_bound(right.begin(), right.end(), -bound - sum) - right.begin());
  }
  return extreme / (static_cast<double>(left.size()) * static_cast<double>(right.size()));
}

double drawn_flips(const std::vector<double>& terms, double bound, const Resampling& resampling) {
  Random random(resampling.seed);
  std::int64_t extreme = 1;  // the data's own pattern
  for (std::int64_t draw = 0; draw < resampling.permutations; ++draw) {
    double sum = 0;
    std::uint64_t signs = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      if (i % 64 == 0) signs = random.bits();
      sum += (signs >> (i % 64)) & 1 ? terms[i] : -terms[i];
    }
    extreme += std::abs(sum) >= bound ? 1 : 0;
  }
  return static_cast<double>(extreme) / static_cast<double>(1 + resampling.permutations);
}

}  // namespace

SignedTest sign_test(std::span<const double> differences) {
  const std::vector<double> others = without_zeros(differences);
  const auto positive = std::count_if(others.begin(), others.end(), [](double value) { return value > 0; });
  SignedTest test = untested(static_cast<double>(positive), others.size(), differences.size());
  const auto pairs = static_cast<double>(others.size());
  const double fewer = std::min(test.statistic, pairs - test.statistic);
  decide(test, others.empty() ? 1 : 2 * boost::math::cdf(boost::math::binomial(pairs, 0.5), fewer));
  return test;
}

SignedTest signed_rank_test(std::span<const double> differences) {
  const std::vector<double> others = without_zeros(differences), ranks = ranks_of_size(others);
  double sum = 0;
  for (std::size_t i = 0; i < others.size(); ++i) sum += others[i] > 0 ? ranks[i] : 0;
  SignedTest test = untested(sum, others.size(), differences.size());
  test.exact = others.size() <= max_exact_ranks;
  decide(test, test.exact ? exact_rank_p(ranks, sum) : normal_rank_p(ranks, sum));
  return test;
}

SignedTest flip_test(std::span<const double> terms, const Resampling& resampling) {
  const std::vector<double> others = without_zeros(terms);
  SignedTest test = untested(sum_of(others), others.size(), terms.size());
  double scale = 0;
  for (const double term : others) scale += std::abs(term);
  const double bound = std::abs(test.statistic) - flip_rounding * scale;
  test.exact = others.size() <= max_exact_flips;
  if (others.empty() || test.exact) {
    decide(test, others.empty() ? 1 : share_of_flips(others, bound));
    return test;
  }
  test.resamples = resampling.permutations;
  test.seed = resampling.seed;
  test.min_p = std::max(test.min_p, 1 / static_cast<double>(1 + resampling.permutations));
  decide(test, drawn_flips(others, bound, resampling));
  return test;
}

OrderedJson to_json(const SignedTest& test) {
  OrderedJson json;
  json["statistic"] = test.statistic;
  json["pairs"] = test.pairs;
  json["zeros_left_out"] = test.zeros;
  json["distinct_arrangements"] = test.arrangements;
  json["least_attainable_p"] = test.min_p;
  put(json, "p", test.p);
  json["exact"] = test.exact;
  json["resamples"] = test.resamples;
  json["seed"] = test.seed;
  return json;
}

}  // namespace gainlens::analyses
