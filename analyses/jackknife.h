#pragma once

#include "analyses/permutation.h"
#include "analyses/shared_text.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// Intervals, at level `confidence`, of Pearson correlations over heads, by leaving out one independent unit at a time.
/// On the scale of Fisher's z = atanh r the interval is Student's. Its centre is z less b, where b = (G - 1)(mean z(-i)
/// - z) is the bias that the noise of G units leaves in a correlation; its squared error is that of jackknife_error()
/// and (b / 2)^2, since b itself is not known well. Percentile intervals of a bootstrap over few units cover far less
/// than they say (docs/analyses/coverage.md has both). Of all runs at most 8% are given one of these that misses; where
/// the noise of the chunks is large, those that are given miss more often. Leaving out a unit does not tell how ranks
/// change, so Spearman's correlation has no interval.
struct Jackknife {
  std::size_t units;  ///< left out one at a time: layers, or stretches of text
  double degrees_of_freedom;
  Maybe<Interval> pearson;         ///< pooled
  Maybe<Interval> pearson_within;  ///< within layers
};

inline constexpr std::size_t least_layers = 10;  ///< of each attention kind, for leaving out layers
/// Share of the variance over heads, within layers for the correlation within layers, that the noise of the chunks may
/// make up in either number. Beyond, r bends so much within the noise that intervals of few chunks miss too often
/// (docs/analyses/coverage.md).
inline constexpr double most_noise = 0.25;

/// Leaves out whole layers, those of each attention kind being a stratum of their own; with several kinds b is left at
/// 0, since a layer that leaves one changes their shares too. Neighbouring layers count as independent, which a
/// permutation test does not need. Missing below `least_layers` of a kind. Source: Efron and Tibshirani 1993, chapter
/// 11.
/// @param kind  [layer position] attention kind
Maybe<Jackknife> leave_out_layers(const ClusteredPairs& pairs, const std::vector<std::string>& kind);

/// Values of heads chunk by chunk: a head's value is the mean over lengths of the mean over its chunks.
struct ChunkedPairs {
  ClusteredPairs heads;  ///< x and y over all chunks
  TextStretches text;    ///< which stretch of text each chunk lies in
  /// [length][chunk][point]; NaN where a chunk has no value.
  std::vector<std::vector<std::vector<double>>> x, y;
};

/// Leaves out stretches of text, each at all lengths together, so that what lengths share counts once. Where a stretch
/// holds more chunks of a length than another, the means without it are those of the chunks that remain; degrees of
/// freedom are those of the length that lies in the fewest stretches. Covers the noise of the text alone, not that
/// other heads, layers or models might differ. Missing below `least_stretches`, and where the noise exceeds
/// `most_noise`.
Maybe<Jackknife> leave_out_text(const ChunkedPairs& pairs);

OrderedJson to_json(const Jackknife& jackknife);

}  // namespace gainlens::analyses
