#include "analyses/crossed_equivalence.h"

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {

Equivalence crossed_equivalence(const Maybe<CrossedEstimate>& estimate, double margin) {
  if (!estimate) return no_equivalence(margin, 0, estimate.reason());
  if (!estimate->p) return no_equivalence(margin, estimate->units, estimate->p.reason());
  Equivalence found = test_equivalence(estimate->estimate(), estimate->units, margin);
  if (!(*estimate->seed_variance > 0)) return found;
  const Equivalence seeds =
      test_equivalence({estimate->value, std::sqrt(*estimate->seed_variance), static_cast<double>(estimate->seeds - 1)},
                       estimate->units, margin);
  found.p = std::max(*found.p, *seeds.p);
  found.difference_p = std::max(*found.difference_p, *seeds.difference_p);
  found.exceeds_p = std::max(*found.exceeds_p, *seeds.exceeds_p);
  if (seeds.interval->low < found.interval->low) found.interval = seeds.interval;
  found.flatness = flatness_of(*found.p, *found.difference_p);
  return found;
}

}  // namespace gainlens::analyses
