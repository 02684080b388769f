#pragma once

#include "data/leave_one_out.h"

#include <cstdint>
#include <string>
#include <vector>

// Data sets made from another one, in which something is known: how many training items are left, or how many are
// wrong. The validation and the test item of every user stay, so that models of all of them are asked the same.

namespace gainlens::data {

/// Histories of users, in time order: [user][interaction], ids from 1.
using Sequences = std::vector<std::vector<ItemId>>;

/// The lines of the format `sequences`: "user item item ...". Users are numbered from 1 in their order.
std::string sequence_lines(const Sequences& sequences);

/// What was done to a data set.
struct ChangedHistories {
  Sequences sequences;             ///< with the ids of the data set
  std::int64_t training = 0;       ///< training items before
  std::int64_t changed = 0;        ///< training items that are left, or that were replaced
  std::int64_t floored = 0;        ///< thinned(): users who keep one item although their share is none
  std::int64_t missing_items = 0;  ///< items of the data set that stand in no history any more
};

/// Keeps a share of each user's training items: which ones is random, and their order stays. Of n items n share are
/// kept; where this is no whole number, it is rounded up or down at random, so that it is right on average. But every
/// user keeps at least one, because without any the user would be dropped, and its test with it. A smaller share of the
/// same seed keeps a subset of a larger one.
/// @param share  above 0, up to 1
/// @throws InvalidArgument  a share out of this range
ChangedHistories thinned(const LeaveOneOut& split, double share, std::uint64_t seed);

/// Replaces each training item with probability `share` by an item that the user does not have, each with the same
/// probability. So a rare item is more often noise than a frequent one. Two places of a user can get the same item.
/// Items that are replaced at one share are also replaced at every larger share of the same seed.
/// @param share  0 to 1
/// @throws InvalidArgument  a share out of this range; a user has every item
ChangedHistories with_noise(const LeaveOneOut& split, double share, std::uint64_t seed);

}  // namespace gainlens::data
