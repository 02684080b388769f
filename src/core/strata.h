#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gainlens {

/// What is known of the users of a leave-one-out split, and of the items.
struct UserCounts {
  std::vector<std::int64_t> target;           ///< [user] id of the test item, from 1
  std::vector<std::int64_t> history_length;   ///< [user] number of items known at the test
  std::vector<std::int64_t> training_length;  ///< [user] number of training items
  std::vector<std::int64_t>
      item_train_count;  ///< [item] how often the item of id place + 1 stands in the training items

  std::size_t users() const { return target.size(); }
  /// How often the test item of a user stands in the training items.
  std::int64_t target_count(std::size_t user) const {
    return item_train_count[static_cast<std::size_t>(target[user] - 1)];
  }
};

/// Groups of users by a count, for example by how often their test item stands in the training items.
struct Strata {
  std::vector<std::int64_t> edges;    ///< the largest count of each stratum but the last, which is open
  std::vector<std::int64_t> stratum;  ///< [user]: 0 to edges.size()
  std::vector<std::int64_t> users;    ///< [stratum]: number of users
};

/// What users of a stratum look like. It shows whether strata of one kind differ in the other kind too (a confound).
struct StratumComposition {
  std::int64_t users = 0;
  double mean_target_count = 0;    ///< mean training count of the test items; NaN without users
  double mean_history_length = 0;  ///< mean number of items known at the test; NaN without users
};

/// Edges of the true quintiles of `counts`: the 20%, 40%, 60% and 80% quantiles (the smallest count with at least that
/// share of the counts at or below it). Equal edges are merged, and an edge at the largest count is left out, so there
/// may be fewer strata and none is empty.
std::vector<std::int64_t> quintile_edges(std::span<const std::int64_t> counts);

/// The edges that bft.tex prints for the item frequencies of Sports. The paper's groups are not the quintiles of its
/// items: 76% of the test items are in the first one. Its numbers of tests (27,478, 4,207, 1,840, 885, 1,129) come out
/// if validation items are counted too, the edges are 42, 84, 125 and 197 in the sense of Strata, and the 59 test items
/// that no user has taken before are left out.
std::vector<std::int64_t> printed_item_edges();  // 43, 84, 126, 198

/// Users by the training count of their test item.
///
/// With edges: stratum s holds counts in (edges[s - 1], edges[s]]. Without edges: true quintiles, that is five groups
/// of equally many items. All n items of the catalogue are sorted by training count, and by id where counts are equal.
/// The item at place r (from 0) is in stratum floor(5 r / n). Items without a training interaction belong to the first
/// stratum. Validation items are not counted. Items whose count is an edge can be on both sides of it, so that the
/// groups stay equally large: in Amazon Sports, 4 interactions are the edge of 12% of the items.
/// Test counts of Sports: 6,782, 3,326, 4,106, 5,901, 15,483 at the edges 4, 6, 8, 15.
/// @throws InvalidArgument  edges that do not rise
Strata by_item_frequency(const UserCounts& counts, std::vector<std::int64_t> edges = {});

/// Users by the number of their training items: stratum s holds numbers in (edges[s - 1], edges[s]]. Without edges:
/// quintile_edges() of the users. Users with equally many items are always together, since nothing else orders them.
/// @throws InvalidArgument  edges that do not rise
Strata by_user_activity(const UserCounts& counts, std::vector<std::int64_t> edges = {});

std::vector<StratumComposition> composition(const UserCounts& counts, const Strata& strata);

/// Pearson correlation over users between the number of known items and the training count of the test item. NaN if one
/// of them does not vary.
double length_frequency_correlation(const UserCounts& counts);

}  // namespace gainlens
