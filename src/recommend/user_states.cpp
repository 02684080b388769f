#include "recommend/user_states.h"

#include "core/check.h"
#include "recommend/acting_filter.h"

namespace gainlens::recommend {

UserStates user_states(Backbone& model, const data::LeaveOneOut& split, data::HeldOut held_out,
                       const std::string& where, const RankingOptions& options) {
  const ActingFilter filter = acting_filter(model, where);
  UserStates found{.rank = {},
                   .precision = {},
                   .confidence = {},
                   .share = filter.share,
                   .most_precision = filter.host.armed_filter().options.most_precision};
  BackboneScorer ranking(model), reading(model, &found.precision);
  const std::vector<float> ranks = rank_all(ranking, split, held_out, options);
  found.rank.assign(ranks.begin(), ranks.end());
  found.confidence = largest_probabilities(reading, split, held_out, options);
  ASSERT(found.precision.size() == ranks.size(), "{} precisions of {} users", found.precision.size(), ranks.size());
  return found;
}

}  // namespace gainlens::recommend
