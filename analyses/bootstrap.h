#pragma once

#include "analyses/permutation.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// Percentile intervals, at level `confidence`, of four correlations.
struct Bootstrap {
  std::int64_t units;  ///< layers, or chunks of a length
  std::int64_t resamples;
  std::uint64_t seed;
  Maybe<Interval> pearson;  ///< pooled
  Maybe<Interval> spearman;
  Maybe<Interval> pearson_within;  ///< within layers
  Maybe<Interval> spearman_within;
};

inline constexpr std::int64_t least_layers = 10;  ///< of each attention kind, for the bootstrap over layers
inline constexpr std::int64_t least_chunks = 3;   ///< for the bootstrap over chunks

/// Draws whole layers with replacement, those of each attention kind among themselves. Neighbouring layers count as independent, which
/// a permutation test does not need. Refused below `least_layers` of a kind.
/// @param kind  [layer position] attention kind
Maybe<Bootstrap> bootstrap_layers(const ClusteredPairs& pairs, const std::vector<std::string>& kind, const Resampling& resampling);

/// Values of heads chunk by chunk: a head's value is the mean over lengths of the mean over its chunks.
struct ChunkedPairs {
  ClusteredPairs heads;  ///< x and y over all chunks
  bool nested;           ///< chunks of equal number share their text
  /// [length][chunk][point]; NaN where a chunk has no value. Nested: chunk i is the same text at every length.
  std::vector<std::vector<std::vector<double>>> x, y;
};

/// Draws chunks with replacement; nested: the same at every length, otherwise for each length anew. Covers the noise of the text alone,
/// not that other heads, layers or models might differ; with few chunks it is too short. Refused below `least_chunks` at a length.
Maybe<Bootstrap> bootstrap_chunks(const ChunkedPairs& pairs, const Resampling& resampling);

OrderedJson to_json(const Bootstrap& bootstrap);

}  // namespace gainlens::analyses
