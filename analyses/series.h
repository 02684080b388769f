#pragma once

#include "analyses/comparison.h"
#include "analyses/options.h"
#include "runfile/run_reader.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// Most runs of a series.
inline constexpr std::size_t max_series_runs = 50;

/// One of several runs that stand on an axis: checkpoints of a training, say.
struct SeriesRun {
  std::string label;
  const runfile::RunReader& reader;
};

/// One run of a series, compared with the first.
struct SeriesPoint {
  std::string label;
  double place = 0;                          ///< on the axis
  std::vector<PairedDifference> quantities;  ///< as compared_quantities(); the first run has no differences
  std::vector<HeadDifference> heads;         ///< at the series' length; empty where heads are not compared
};

struct Series {
  bool by_step = false;
  std::int64_t tokens = 0;           ///< the longest context length that every run has
  std::vector<SeriesPoint> points;   ///< in the order of the axis
  std::vector<std::string> caveats;  ///< of any comparison, each once
  std::string no_heads;              ///< why heads are not compared one by one; empty if they are
};

/// The number of training steps in the name of a run: the last whole number in it ("step1000" is 1000).
/// @throws InvalidArgument  it has none, or one above 2^53
double step_of(const std::string& label);

/// Compares every run of a series with the first of its axis, chunk by chunk.
/// @param by_step  the axis is step_of() each label, else the order that is given
/// @throws InvalidArgument  fewer than 2 runs or more than max_series_runs; two at one step; two of one label; runs
///     that cannot be compared, or that have no context length in common; as compare()
Series series(std::span<const SeriesRun> runs, bool by_step, const Options& options = {});
OrderedJson to_json(const Series& series);

}  // namespace gainlens::analyses
