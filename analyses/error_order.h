#pragma once

#include "analyses/measured.h"
#include "analyses/seed_estimate.h"
#include "core/json.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Does the precision of a filter order users by the error of their recommendations? docs/analyses/error-by-precision.md

namespace gainlens::analyses {

/// The users of a test, with what is known of each before the test item.
struct RankedUsers {
  std::string arm;
  std::vector<std::uint64_t> seeds;
  std::vector<std::vector<double>> rank;        ///< [seed][user] of the test item, 1 is the best
  std::vector<std::vector<double>> precision;   ///< [seed][user] of the state, mean over dimensions
  std::vector<std::vector<double>> confidence;  ///< [seed][user] probability of the best item
  std::vector<double> history_length;           ///< [user] number of known items
  std::vector<double> history_popularity;       ///< [user] mean of ln(1 + training count) over the known items
  std::vector<double> last_popularity;          ///< [user] training count of the last known item
  std::vector<std::int64_t> target;             ///< [user] id of the test item
  double most_precision = 0;                    ///< the bound of the filter
};

/// The quantities that may order users: the precision and its rivals.
inline constexpr std::size_t error_quantities = 5;
/// The first rivals need the data alone; the last one, the model's confidence, needs the scores of all items.
inline constexpr std::array<std::string_view, error_quantities> error_quantity_names = {
    "precision", "history length", "popularity of the history", "popularity of the last item", "confidence"};
inline constexpr std::array<std::string_view, error_quantities> error_quantity_keys = {
    "precision", "history_length", "history_popularity", "last_popularity", "confidence"};

struct ErrorOrderOptions {
  std::int64_t groups = 100;  ///< of users, at most; each is left out once for the intervals
  std::uint64_t seed = 0;     ///< by which users are put into groups
  std::int64_t bins = 10;     ///< of users by each quantity
  std::size_t threads = 1;    ///< changes no number
};

/// The fewest users, and the fewest different test items, for which an interval is given.
inline constexpr std::size_t fewest_ordered_users = 30, fewest_ordered_targets = 20;

/// How the quantities order users by one measure of success.
struct ErrorOrder {
  /// Spearman's rho of each quantity with the success: above 0 if a larger quantity goes with a smaller error.
  std::array<SeedEstimate, error_quantities> rho;
  /// Of each rival: rho of the precision less the size of the rival's rho, of which the sign is free. The sign is that
  /// of the mean over seeds. [0] is not computed
  std::array<SeedEstimate, error_quantities> difference;
  /// Of each rival: partial rho of the precision given this rival. [0] is not computed
  std::array<SeedEstimate, error_quantities> given;
  SeedEstimate given_data;  ///< partial rho of the precision given all rivals but the confidence
  SeedEstimate given_all;   ///< partial rho of the precision given all rivals
};

/// Users of similar rank by a quantity, of all seeds together.
struct ErrorBin {
  double percentile;                            ///< mean place of the users by the quantity, 0 to 1
  double value;                                 ///< mean of the quantity
  std::size_t users;                            ///< summed over seeds
  double hit, gain;                             ///< mean HR@10, NDCG@10
  Maybe<Interval> hit_interval, gain_interval;  ///< 95%, over users, with these models
};

struct ErrorOrderReading {
  std::string arm;
  std::vector<std::uint64_t> seeds;
  std::size_t users, targets;  ///< targets: different test items
  std::size_t groups;          ///< of users, that are left out; 0: no interval
  double at_bound;             ///< share of users whose precision is at the bound in all dimensions, mean over seeds
  double most_precision;
  ErrorOrder by_rank;                                        ///< success: the negative rank of the test item
  ErrorOrder by_hit;                                         ///< success: a rank of at most 10
  std::array<std::vector<ErrorBin>, error_quantities> bins;  ///< of increasing quantity; empty ones are left out
  ErrorOrderOptions options;
};

/// Users with one test item err together and are left out together.
/// @throws InvalidArgument  no user, fewer users than bins, a value that is not finite, options out of range
ErrorOrderReading error_order(const RankedUsers& users, const ErrorOrderOptions& options);

/// A rho, or a partial rho, below this counts as none: it takes the part of an equivalence margin.
inline constexpr double min_order = 0.05;

/// What the interval of a rho says.
enum class OrderVerdict {
  orders,     ///< it lies above 0
  reverses,   ///< it lies below 0
  does_not,   ///< it holds 0 and lies below `min_order`
  undecided,  ///< it holds 0 and reaches `min_order`, or there is none
};
OrderVerdict verdict_of(const SeedEstimate& rho);

/// @throws InvalidArgument  fewer than 20 groups or more than 10,000; fewer than 2 bins or more than 1,000
void check(const ErrorOrderOptions& options);

OrderedJson to_json(const ErrorOrderReading& reading);

}  // namespace gainlens::analyses
