#include "recommend/user_states.h"

#include "core/check.h"
#include "recommend/acting_filter.h"

#include <utility>

namespace gainlens::recommend {

UserStates user_states(Backbone& model, const data::LeaveOneOut& split, data::HeldOut held_out,
                       const std::string& where, const RankingOptions& options) {
  const ActingFilter filter = acting_filter(model, where);
  UserStates found{.rank = {},
                   .precision = {},
                   .confidence = {},
                   .share = filter.share,
                   .most_precision = filter.host.armed_filter().options.most_precision};
  BackboneScorer scorer(model, &found.precision);
  ConfidentRanks ranked = rank_with_confidence(scorer, split, held_out, options);
  found.rank.assign(ranked.ranks.begin(), ranked.ranks.end());
  found.confidence = std::move(ranked.largest_probability);
  ASSERT(found.precision.size() == found.rank.size(), "{} precisions of {} users", found.precision.size(),
         found.rank.size());
  return found;
}

}  // namespace gainlens::recommend
