#pragma once

#include "analyses/selection.h"
#include "analyses/statistics.h"
#include "runfile/text_layout.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// Chunks of different lengths share text (runfile/text_layout.h), so that their means err together. What is
/// independent are stretches of text: a stretch is the extent of one chunk of the longest of the lengths, and a shorter
/// chunk belongs to the stretch that holds most of it. Nested or spread, stretch c holds chunk c of every length.
/// Consecutive, the first stretches hold several chunks of a shorter length and the others none. A consecutive chunk
/// may reach into the next stretch; like any two neighbours the two are then taken as independent.
struct TextStretches {
  std::vector<std::vector<std::size_t>> of_chunk;  ///< [length][chunk of Length::samples] number of its stretch
  std::vector<std::size_t> numbers;                ///< of the stretches that hold a chunk, ascending
  std::size_t fewest;     ///< stretches that hold a chunk of the length that lies in the fewest
  std::int64_t scarcest;  ///< that length, in tokens
};

/// Below this many stretches no interval is given: the least at which its coverage was simulated
/// (docs/analyses/coverage.md).
inline constexpr std::size_t least_stretches = 3;

/// @param lengths  at least one, shortest first, each with a chunk
TextStretches text_stretches(const runfile::Request& request, const std::vector<Length>& lengths);

/// Whether chunk c of a shorter length lies within chunk c of each longer one: nested or spread.
bool is_paired(const runfile::Request& request);

/// Which text the lengths share and what follows for their differences, in sentences.
std::string sharing_in_words(const runfile::Request& request, const std::vector<Length>& lengths);

using ByChunk = std::map<std::int64_t, double>;  ///< sample number -> value

/// A difference of means over chunks of two lengths.
struct TextDifference {
  double value;
  Maybe<Estimate> estimate;  ///< the value with its error
  std::string basis;         ///< what the error rests on: "5 paired chunks", ...
};

/// Mean of `longer` less mean of `shorter`, whose chunks share text.
/// - Nested or spread: over the chunks that both have, with the error of the mean of their paired differences.
/// - Consecutive: over all chunks. Both lengths leave out one stretch of text at a time (jackknife), which counts the
/// covariance of what they share; degrees of freedom are those of the length that lies in the fewest stretches.
/// - Consecutive, where a length lies in fewer than `least_stretches`: no data tell the covariance. By Cauchy and
///   Schwarz it is at most sqrt(f g) times the product of the two errors, f and g the shares of their chunks that hold
///   common text. The error takes it at its worst, with the opposite sign; degrees of freedom are those of the length
///   with fewer chunks. Missing where there is no pair, or a length has no value. With one pair, or one value of a
///   length, only the error is missing.
Maybe<TextDifference> difference_of_means(const runfile::Request& request, const Length& longer_length,
                                          const ByChunk& longer, const Length& shorter_length, const ByChunk& shorter);

/// The mean of `longer` over that of `shorter`, with an interval of this ratio: Student on its logarithm, whose error
/// is that of difference_of_means() of the chunks' values relative to their mean. It is no interval of the ratio of
/// geometric means.
struct TextRatio {
  double ratio;
  Maybe<Interval> interval;
};
/// Missing as difference_of_means(), and where one of the means is not positive.
Maybe<TextRatio> ratio_of_means(const runfile::Request& request, const Length& longer_length, const ByChunk& longer,
                                const Length& shorter_length, const ByChunk& shorter);

}  // namespace gainlens::analyses
