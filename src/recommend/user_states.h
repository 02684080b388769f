#pragma once

#include "data/leave_one_out.h"
#include "recommend/full_ranking.h"

#include <string>
#include <vector>

namespace gainlens::recommend {

/// What a model with a filter knows of each user when the held-out item is to be found, and its rank.
struct UserStates {
  std::vector<double> rank;        ///< [user] as rank_all()
  std::vector<double> precision;   ///< [user] as BackboneScorer gives it
  std::vector<double> confidence;  ///< [user] as ConfidentRanks::largest_probability
  double share;                    ///< of the filter that is in force: below 1 while it warms up
  double most_precision;           ///< the bound of the precision in each dimension
};

/// @param where  names the model in messages
/// @throws InvalidArgument  as acting_filter() and rank_with_confidence()
/// @throws RunFailed        a score or a precision is NaN or infinite
UserStates user_states(Backbone& model, const data::LeaveOneOut& split, data::HeldOut held_out,
                       const std::string& where, const RankingOptions& options = {});

}  // namespace gainlens::recommend
