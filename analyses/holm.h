#pragma once

#include <span>
#include <vector>

namespace gainlens::analyses {

/// p-values adjusted for their number: a ruling that asks whether any of them, or which, is at most the level, errs
/// with at most that level, however the tests depend on each other. A ruling that asks whether all are at most the
/// level needs no adjustment.
/// @param p  each in [0, 1]
/// @returns  in the order of `p`; at least as large, at most 1
/// Source: Holm 1979, step-down.
std::vector<double> holm(std::span<const double> p);

}  // namespace gainlens::analyses
