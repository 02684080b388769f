#pragma once

#include "analyses/measured.h"
#include "analyses/options.h"
#include "core/json.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gainlens::analyses {

/// A test whose null hypothesis is: the sign of each difference is a fair coin. Every pattern of signs is then equally
/// likely. Differences of exactly 0 have no sign and are left out.
struct SignedTest {
  double statistic;
  std::size_t pairs;    ///< differences other than 0
  std::size_t zeros;    ///< differences of exactly 0
  double arrangements;  ///< distinct patterns of signs: 2^pairs
  double min_p;         ///< smallest possible p
  Measured p;           ///< two-sided; missing, with the reason, if `min_p` exceeds `significance`
  /// Whether p comes from all patterns. If not, the signed-rank test uses the normal approximation, and flips of the
  /// mean are drawn at random.
  bool exact;
  std::int64_t resamples = 0;  ///< patterns drawn; 0 if exact or approximated
  std::uint64_t seed = 0;      ///< of the draws
};

/// Number of positive differences against the exact binomial distribution.
SignedTest sign_test(std::span<const double> differences);

/// Wilcoxon's signed-rank test: the sum of the ranks of |difference| over the positive differences. Zeros are left out
/// before ranking, as Wilcoxon did (not Pratt's way). Ties share the average rank, and p is exact for these ranks. With
/// more than `max_exact_ranks` pairs it is the normal approximation with the correction for ties and without one for
/// continuity.
SignedTest signed_rank_test(std::span<const double> differences);
inline constexpr std::size_t max_exact_ranks = 200;

/// Flips the signs of terms: the statistic is their sum. With terms d_s it tests the mean of d. All patterns are tried
/// if there are at most `max_exact_flips` terms, otherwise `resampling.permutations` are drawn.
SignedTest flip_test(std::span<const double> terms, const Resampling& resampling);
inline constexpr std::size_t max_exact_flips = 30;

OrderedJson to_json(const SignedTest& test);

}  // namespace gainlens::analyses
