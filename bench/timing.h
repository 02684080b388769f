#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace gainlens::bench {

/// Summary of the seconds of the runs of one method.
struct RunTimes {
  double median = 0;
  double low = 0;   ///< lower quartile
  double high = 0;  ///< upper quartile
  std::int64_t runs = 0;
};

/// Median and quartiles, interpolated linearly between order statistics.
/// @param seconds  at least one
RunTimes summarise(std::vector<double> seconds);

/// How often a method is run.
struct RunBudget {
  std::int64_t repeats = 0;  ///< exactly this many runs; 0: the other members decide
  std::int64_t least = 3;    ///< at least this many runs, however long they take
  double seconds = 4;        ///< then more runs, until all together have taken this long
  std::int64_t most = 101;   ///< or until there are this many runs
  bool processor = false;  ///< the time that the processors worked for this program: for a machine with others at work
};

/// Runs the methods in turn, round after round, so that a slow moment of the machine affects all of them. A method that
/// has used up its budget takes no part in later rounds. The time of a run includes freeing what it allocated.
std::vector<RunTimes> interleaved_times(std::span<const std::function<void()>> methods, const RunBudget& budget);

}  // namespace gainlens::bench
