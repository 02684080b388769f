#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace gainlens::bench {

/// Seconds of the runs of one method.
struct RunTimes {
  double median = 0;
  double low = 0;   ///< lower quartile
  double high = 0;  ///< upper quartile
  std::int64_t runs = 0;
};

/// Median and quartiles, interpolated linearly between order statistics. At least one.
RunTimes summarise(std::vector<double> seconds);

/// How often a method is run.
struct RunBudget {
  std::int64_t repeats = 0;  ///< exactly so often; 0: as the other two say
  std::int64_t least = 3;    ///< at least so often, whatever it takes
  double seconds = 4;        ///< then until its runs have taken so long together
  std::int64_t most = 101;   ///< or it was run so often
};

/// Runs the methods in turn, round after round, so that a slow moment of the machine hits each; one that has used up
/// its budget is left out of later rounds. What a run allocates is freed within its time.
std::vector<RunTimes> interleaved_times(std::span<const std::function<void()>> methods, const RunBudget& budget);

}  // namespace gainlens::bench
