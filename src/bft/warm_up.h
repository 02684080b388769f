#pragma once

#include "bft/filter_options.h"

#include <cstdint>
#include <string>

namespace gainlens::bft {

/// Share of the filter that is in force at a step of the training, from 0 (the plain layer) to 1. Step 0 is the first.
/// Source: docs/bft.md, "Training".
/// @param epoch  steps of an epoch
double share_at(const FilterOptions& options, std::int64_t step, std::int64_t epoch);

/// Why no part of the filter is in force in any step of a training: "its warm-up takes 50 steps (--warm-up), and the
/// training has 40". Empty: it acts.
/// @param steps, epoch  of the training, and of one of its epochs
std::string why_never_in_force(const FilterOptions& options, std::int64_t steps, std::int64_t epoch);

/// Weight of what was before in a running mean: that of all batches alike until it reaches 0.99.
/// @param seen  number of batches before this one
double running_memory(std::int64_t seen);

}  // namespace gainlens::bft
