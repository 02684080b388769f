#pragma once

#include "analyses/measured.h"
#include "analyses/seed_estimate.h"
#include "core/json.h"
#include "core/strata.h"
#include "core/user_attention.h"
#include "runfile/attention_run.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// What the attention of each head of a recommender rests on, and which users it differs for.
// docs/analyses/user-attention.md

namespace gainlens::analyses {

struct AttentionOptions {
  std::int64_t groups = 100;  ///< of users, at most; each is left out once for the intervals
  std::uint64_t seed = 0;     ///< by which users are put into groups
  std::size_t threads = 1;    ///< changes no number
};

/// The fewest users for which an interval is given.
inline constexpr std::size_t fewest_attention_users = 30;

/// What is known of a user, and may go with the numbers of a head.
enum class UserTrait : std::size_t { history_length, last_count, target_count };
inline constexpr std::size_t user_traits = 3;
inline constexpr std::array<std::string_view, user_traits> user_trait_keys = {"history_length", "last_item_count",
                                                                              "test_item_count"};
inline constexpr std::array<std::string_view, user_traits> user_trait_names = {
    "history length", "training count of the last item", "training count of the test item"};

/// How users are grouped. The last three are the groups of the other analyses (core/strata.h).
enum class UserGrouping : std::size_t {
  history_length,  ///< by the number of known items, with more groups among the long histories
  user_activity,   ///< quintiles of users by their number of training items
  last_item,       ///< quintiles of items by training count: that of the last known item
  target_item,     ///< likewise: that of the test item
};
inline constexpr std::size_t user_groupings = 4;
inline constexpr std::array<std::string_view, user_groupings> user_grouping_keys = {"history_length", "user_activity",
                                                                                    "last_item", "test_item"};

/// Groups of users and what they are.
struct GroupedUsers {
  Strata strata;
  std::vector<double> mean_length;  ///< [stratum] known items
  std::vector<double> mean_count;   ///< [stratum] training count of the item that groups them; NaN of the first two
};

/// A number of one head.
struct HeadNumber {
  SeedEstimate mean;                          ///< over users
  std::array<SeedEstimate, user_traits> rho;  ///< Spearman, over users
  /// Partial Spearman given the history length; [0] is not computed.
  std::array<SeedEstimate, user_traits> given_length;
  std::array<std::vector<SeedEstimate>, user_groupings> by;  ///< [grouping][stratum] mean over its users
  std::array<SeedEstimate, user_groupings> change;           ///< last stratum less the first
};

struct Head {
  std::int64_t layer, head;
  std::vector<Maybe<HeadNumber>> numbers;  ///< [attention_numbers]; missing: the model has none

  const Maybe<HeadNumber>& number(std::string_view name) const;
};

/// One arm.
struct AttentionReading {
  std::string arm;
  std::vector<std::uint64_t> seeds;  ///< finished ones
  std::size_t users;
  std::size_t groups;  ///< of users, that are left out; 0: no interval
  std::array<GroupedUsers, user_groupings> groupings;
  std::vector<Head> heads;  ///< layer by layer
  AttentionOptions options;
};

/// Every arm with a finished training.
/// @throws InvalidArgument  none is finished; options out of range
std::vector<AttentionReading> attention_evidence(const runfile::AttentionRun& run, const AttentionOptions& options);

/// @throws InvalidArgument  fewer than 20 groups or more than 10,000
void check(const AttentionOptions& options);

OrderedJson to_json(const AttentionReading& reading);

}  // namespace gainlens::analyses
