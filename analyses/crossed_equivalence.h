#pragma once

#include "analyses/crossed_estimate.h"
#include "analyses/equivalence.h"

namespace gainlens::analyses {

/// Two one-sided tests of an estimate against ±margin, with the error over seeds and units and with that of the seeds
/// alone. As for CrossedEstimate, the larger p and the wider interval are stated.
/// Missing like `estimate`, and with fewer than `fewest_crossed_seeds`.
Equivalence crossed_equivalence(const Maybe<CrossedEstimate>& estimate, double margin);

}  // namespace gainlens::analyses
