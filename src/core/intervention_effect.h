#pragma once

#include <optional>

namespace gainlens {

/// What an intervention did in one document.
struct InterventionEffect {
  double nll = 0;                   ///< mean negative log likelihood of the document's targets, in nats
  double site_norm_before = 0;      ///< Euclidean norm of all numbers that the intervention changes, before
  double site_norm_after = 0;       ///< and after
  double largest_logit_change = 0;  ///< of any logit of any position
  /// What was asked of the last position: the difference of two logits. Nothing: nothing was asked.
  std::optional<double> answer = {};

  friend bool operator==(const InterventionEffect&, const InterventionEffect&) = default;
};

}  // namespace gainlens
