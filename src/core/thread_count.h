#pragma once

#include <cstdint>

namespace gainlens {

/// The largest number of threads that can be asked for: four for each core of this machine, at least 64. More than the
/// cores help nothing, but the last bits of some numbers depend on the number of threads, so that a run of a larger
/// machine can be repeated here. Each further thread costs about 20 ms before any work is done.
std::int64_t max_threads();

/// Checks the option --threads.
/// @param threads  0 stands for all cores
/// @throws InvalidArgument  negative, or above max_threads()
void check_threads(std::int64_t threads);

/// Starts as many threads as libtorch is about to start, and ends them. libtorch would wait forever for a thread that
/// the system does not give.
/// @param threads  of each of its two pools
/// @throws RunFailed  the system has no memory for them, or does not allow so many (ulimit)
void check_threads_can_start(std::int64_t threads);

}  // namespace gainlens
