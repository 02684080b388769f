#pragma once

#include "analyses/paper_gains.h"
#include "core/json.h"
#include "core/strata.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// Groups of users, and what their users look like.
struct StratifiedUsers {
  StratumKind kind;
  bool shares_edges;  ///< whether items whose count is an edge can be on both sides of it
  Strata strata;
  std::vector<StratumComposition> composition;  ///< [stratum]
};

/// @param item_edges  of strata of items; empty: true quintiles of the catalogue
/// @throws InvalidArgument  edges that do not rise
StratifiedUsers stratify(StratumKind kind, const UserCounts& users, const std::vector<std::int64_t>& item_edges = {});

std::string_view name_of(StratumKind kind);  ///< "item_frequency"
/// {"edges": [...], "composition": [...]}
OrderedJson to_json(const StratifiedUsers& users);

}  // namespace gainlens::analyses
