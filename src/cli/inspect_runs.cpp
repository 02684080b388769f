#include "cli/inspect_parts.h"

#include <algorithm>
#include <iterator>

namespace gainlens::cli {

// Each in the file of its kind.
extern const RunInspection sweep_inspection, recommender_sweep_inspection, recommender_inspection,
    experiment_inspection, intervention_inspection, patching_inspection, gate_arms_inspection;

const RunInspection* inspection_of(runfile::RunKind kind) {
  static constexpr const RunInspection* all[] = {
      &sweep_inspection,        &recommender_sweep_inspection, &recommender_inspection, &experiment_inspection,
      &intervention_inspection, &patching_inspection,          &gate_arms_inspection};
  const auto* const found = std::ranges::find(all, kind, [](const RunInspection* one) { return one->kind; });
  return found == std::end(all) ? nullptr : *found;
}

}  // namespace gainlens::cli
