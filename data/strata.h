#pragma once

#include "data/leave_one_out.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gainlens::data {

/// Groups of users by a count, for example by how often their test item stands in the training items.
struct Strata {
  std::vector<std::int64_t> edges;    ///< stratum s holds counts in (edges[s - 1], edges[s]]; the last is open
  std::vector<std::int64_t> stratum;  ///< [user]: 0 to edges.size()
  std::vector<std::int64_t> users;    ///< [stratum]: number of users
};

/// What users of a stratum look like. It shows whether strata of one kind differ in the other kind too (a confound).
struct StratumComposition {
  std::int64_t users = 0;
  double mean_target_count = 0;    ///< mean training count of the test items
  double mean_history_length = 0;  ///< mean number of items known at the test
};

/// Edges of the true quintiles of `counts`: the 20%, 40%, 60% and 80% quantiles (the smallest count with at least that
/// share of the counts at or below it). Equal edges are merged, so there may be fewer strata.
std::vector<std::int64_t> quintile_edges(std::span<const std::int64_t> counts);

/// The edges that bft.tex prints for the item frequencies of Sports.
std::vector<std::int64_t> printed_item_edges();  // 43, 84, 126, 198

/// Users by the training count of their test item. Without edges: quintiles over the items with at least one training
/// interaction.
Strata by_item_frequency(const LeaveOneOut& split, std::vector<std::int64_t> edges = {});
/// Users by the number of their training items. Without edges: quintiles over the users.
Strata by_user_activity(const LeaveOneOut& split, std::vector<std::int64_t> edges = {});

std::vector<StratumComposition> composition(const LeaveOneOut& split, const Strata& strata);

/// Pearson correlation over users between the number of known items and the training count of the test item. NaN if one
/// of them does not vary.
double length_frequency_correlation(const LeaveOneOut& split);

}  // namespace gainlens::data
