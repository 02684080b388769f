#pragma once

#include "analyses/measured.h"

#include <span>
#include <vector>

namespace gainlens::analyses {

/// p-values adjusted for the number of tests. A ruling that one test of several can bring about compares adjusted p
/// with the level: it is then wrong with at most that probability, however the tests depend on each other. A ruling
/// that needs every p to be at most the level uses unadjusted p.
/// @param p  each in [0, 1]
/// @returns  in the order of `p`; each at least as large as in `p`, and at most 1
/// Source: Holm 1979, step-down.
std::vector<double> holm(std::span<const double> p);
/// The same over the p that there are. A missing one stays missing with its reason and does not count.
std::vector<Measured> holm_where_present(std::span<const Measured> p);

}  // namespace gainlens::analyses
