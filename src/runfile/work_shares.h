#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gainlens::runfile {

/// Splits pieces of work among processes: the longest first, each to the process that has least so far (the lower rank
/// of equals). The same costs give the same shares everywhere; no process gets more than 4/3 of what the best split
/// gives its busiest one.
///
/// @param costs  of each piece, in any unit proportional to time
/// @param size   processes
/// @returns      [size] indices into `costs`, ascending; each index once
/// Source: Graham 1969, "Bounds on multiprocessing timing anomalies" (longest processing time first).
std::vector<std::vector<std::size_t>> balanced_shares(std::span<const double> costs, std::int64_t size);

}  // namespace gainlens::runfile
