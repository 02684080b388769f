#pragma once

#include "hooks/hooked_model.h"
#include "interventions/arm.h"

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gainlens::interventions {

/// What stands at some sites in a pass that nothing changes.
/// @param sites  names; none: no pass is run
SiteValues site_values(hooks::HookedModel& model, std::span<const std::int32_t> tokens,
                       const std::set<std::string>& sites, const hooks::ForwardOptions& options);

/// The mean of some sites over all positions of some documents, [1, 1, ..] in float64.
/// @param documents  at least one, unless there are no sites
SiteValues site_means(hooks::HookedModel& model, const std::vector<std::vector<std::int32_t>>& documents,
                      const std::set<std::string>& sites, const hooks::ForwardOptions& options);

}  // namespace gainlens::interventions
