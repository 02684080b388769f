#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gainlens::runfile {

/// Splits pieces of work among processes. The longest pieces come first. Each piece goes to the process with the least
/// work so far (the lowest rank of equals). The same costs give the same shares everywhere. No process gets more than
/// 4/3 of the largest share of the best split.
///
/// @param costs  of each piece, in any unit proportional to time
/// @param size   number of processes
/// @returns      [size] indices into `costs`, ascending; each index once
/// Source: Graham 1969, "Bounds on multiprocessing timing anomalies" (longest processing time first).
std::vector<std::vector<std::size_t>> balanced_shares(std::span<const double> costs, std::int64_t size);

}  // namespace gainlens::runfile
