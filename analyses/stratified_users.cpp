#include "analyses/stratified_users.h"

#include <utility>

namespace gainlens::analyses {

StratifiedUsers stratify(StratumKind kind, const UserCounts& users, const std::vector<std::int64_t>& item_edges) {
  const bool items = kind == StratumKind::item_frequency;
  Strata strata = items ? by_item_frequency(users, item_edges) : by_user_activity(users);
  std::vector<StratumComposition> who = composition(users, strata);
  return {kind, items && item_edges.empty(), std::move(strata), std::move(who)};
}

std::string_view name_of(StratumKind kind) {
  return kind == StratumKind::item_frequency ? "item_frequency" : "user_activity";
}

OrderedJson to_json(const StratifiedUsers& users) {
  OrderedJson json = {{"edges", users.strata.edges}, {"composition", OrderedJson::array()}};
  for (const StratumComposition& stratum : users.composition)
    json["composition"].push_back({{"users", stratum.users},
                                   {"mean_target_count", stratum.mean_target_count},  // NaN becomes null
                                   {"mean_history_length", stratum.mean_history_length}});
  return json;
}

}  // namespace gainlens::analyses
