#pragma once

#include "analyses/permutation.h"
#include "analyses/shared_text.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// Intervals, at level `confidence`, of Pearson correlations over heads, by leaving out one stretch of text at a time.
/// - The interval is Student's on the scale of Fisher's z = atanh r. Its centre is z - b, where
///   b = (G - 1)(mean z(-i) - z) is the bias that the noise of G units causes. Its squared error is that of
///   jackknife_error() plus (b / 2)^2, because b is not known well.
/// - At most 8% of all runs get an interval that misses the true value (docs/analyses/coverage.md). If the chunks are
///   noisy, fewer runs get an interval, and those intervals miss more often. Percentile intervals of a bootstrap over
///   few units miss far more often.
/// - Spearman's correlation has no interval: leaving out a unit does not show how ranks change.
struct Jackknife {
  std::size_t units;  ///< number of stretches of text, left out one at a time
  double degrees_of_freedom;
  Maybe<Interval> pearson;         ///< pooled
  Maybe<Interval> pearson_within;  ///< within layers
};

/// Largest share of the variance over heads that chunk noise may have, in either number (for the correlation within
/// layers: of the variance within layers). With more noise, intervals from few chunks miss too often
/// (docs/analyses/coverage.md).
inline constexpr double max_noise = 0.25;

/// The smallest and the largest Pearson correlation over heads among those with one layer left out: how much a single
/// layer decides. It is a range of this run without a level, and no interval. An interval over layers does not hold
/// what it states: layers of a model differ in size, and neighbours are alike (docs/analyses/coverage.md, "Layers").
struct LayerRange {
  std::size_t layers;              ///< left out one at a time
  Maybe<Interval> pearson;         ///< pooled
  Maybe<Interval> pearson_within;  ///< within layers
};
inline constexpr std::size_t min_layers = 3;  ///< for leave_out_layers(): with one left out, two remain
/// Why no interval over layers is given, for the places where one would stand.
inline constexpr std::string_view no_layer_interval =
    "the usual interval over layers holds less than it states, because layers differ in size and neighbours are alike; "
    "the range with one layer left out is given instead";

/// Leaves out whole layers, one at a time. Missing with fewer than `min_layers`.
Maybe<LayerRange> leave_out_layers(const ClusteredPairs& pairs);

/// Values of heads chunk by chunk: a head's value is the mean over lengths of the mean over its chunks.
struct ChunkedPairs {
  ClusteredPairs heads;  ///< x and y over all chunks
  TextStretches text;    ///< the stretch of text that each chunk lies in
  /// [length][chunk][point]; NaN if a chunk has no value.
  std::vector<std::vector<std::vector<double>>> x, y;
};

/// Leaves out stretches of text, each at all lengths together, so text that lengths share counts once. The means
/// without a stretch are over the chunks that remain, however many it held. Degrees of freedom are those of the length
/// that lies in the fewest stretches. The interval covers the noise of the text only, not how other heads, layers or
/// models might differ. Missing with fewer than `min_stretches`, and if the noise exceeds `max_noise`.
Maybe<Jackknife> leave_out_text(const ChunkedPairs& pairs);

OrderedJson to_json(const Jackknife& jackknife);
OrderedJson to_json(const LayerRange& range);

}  // namespace gainlens::analyses
