#pragma once

#include "data/repeats.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::data {

/// What a global temporal split makes of the histories.
struct TemporalCut {
  double time = 0;             ///< T, in the unit of the file
  std::int64_t later = 0;      ///< interactions that are left out
  std::vector<bool> untested;  ///< [user in the file] has no test; empty: the split is none in time, all have one

  bool tested(std::size_t user) const { return untested.empty() || !untested[user]; }
};

/// Cuts the histories at one moment T for all users. It is given, or of N interactions the time of the one at place
/// floor(share N) in the order of time, from 0: at most this share lies before T. Of each user, interactions before T
/// stay, and the first one from T on, which is the test; of several at the same time the first in the file. A user with
/// fewer than two interactions before T, or with none from T on, has no test; the former loses those from T on.
/// Interactions with items below `min_item_count` do not count.
/// @param places  loses the places that are left out. Untouched if the split is none in time
/// @throws InvalidArgument  the file has no times; nothing lies before T
TemporalCut cut_by_time(const RawInteractions& raw, const InteractionOptions& options, const std::string& where,
                        PlacesOfUsers& places);

}  // namespace gainlens::data
