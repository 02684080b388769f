#pragma once

#include "analyses/permutation.h"
#include "analyses/shared_text.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// Intervals, at level `confidence`, of Pearson correlations over heads, by leaving out one independent unit at a time.
/// - The interval is Student's on the scale of Fisher's z = atanh r. Its centre is z - b, where
///   b = (G - 1)(mean z(-i) - z) is the bias that the noise of G units causes. Its squared error is that of
///   jackknife_error() plus (b / 2)^2, because b is not known well.
/// - At most 8% of all runs get an interval that misses the true value (docs/analyses/coverage.md). If the chunks are
///   noisy, fewer runs get an interval, and those intervals miss more often. Percentile intervals of a bootstrap over
///   few units miss far more often.
/// - Spearman's correlation has no interval: leaving out a unit does not show how ranks change.
struct Jackknife {
  std::size_t units;  ///< number of units (layers, or stretches of text), left out one at a time
  double degrees_of_freedom;
  Maybe<Interval> pearson;         ///< pooled
  Maybe<Interval> pearson_within;  ///< within layers
};

inline constexpr std::size_t least_layers = 10;  ///< of each kind of attention, for leave_out_layers()
/// Largest share of the variance over heads that chunk noise may have, in either number (for the correlation within
/// layers: of the variance within layers). With more noise, intervals from few chunks miss too often
/// (docs/analyses/coverage.md).
inline constexpr double most_noise = 0.25;

/// Leaves out whole layers. The layers of each kind of attention are a stratum; with several kinds b is 0, because
/// leaving out a layer also changes the shares of the kinds. Neighbouring layers count as independent, an assumption
/// that the permutation tests do not make. Missing with fewer than `least_layers` of a kind.
/// @param kind  [layer position] kind of attention
/// Source: Efron and Tibshirani 1993, chapter 11.
Maybe<Jackknife> leave_out_layers(const ClusteredPairs& pairs, const std::vector<std::string>& kind);

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
/// models might differ. Missing with fewer than `least_stretches`, and if the noise exceeds `most_noise`.
Maybe<Jackknife> leave_out_text(const ChunkedPairs& pairs);

OrderedJson to_json(const Jackknife& jackknife);

}  // namespace gainlens::analyses
