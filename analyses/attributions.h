#pragma once

#include "analyses/measured.h"
#include "core/attribution.h"
#include "core/json.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// One estimated intervention.
struct EstimatedArm {
  std::string intervention;
  double estimate;              ///< of the change, mean over documents
  Maybe<Interval> interval;     ///< of the estimate over documents
  std::optional<double> exact;  ///< the change itself, where it was measured: mean over documents
};

/// Estimates of attribution patching, with how far they can be trusted.
struct Attributions {
  std::size_t documents;
  double native;         ///< the number that changes, mean over documents
  std::size_t exact;     ///< how many were measured exactly
  Measured correlation;  ///< Spearman, of estimates and exact changes of those
  std::vector<EstimatedArm> arms;
};

Attributions attributions(const Attribution& attribution);

/// {"native": x, "rank_correlation": r, "exact": 20, "arms": [{"intervention": .., "estimate": .., "exact": ..}, ..]}
OrderedJson to_json(const Attributions& attributions);

}  // namespace gainlens::analyses
