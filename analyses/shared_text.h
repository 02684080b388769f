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

/// The independent units of text. Chunks of different lengths share text (runfile/text_layout.h), so their means err
/// together. A stretch is the text of one chunk of the longest length; a shorter chunk belongs to the stretch that
/// holds most of it.
/// - Nested or spread: stretch c holds chunk c of every length.
/// - Consecutive: the first stretches hold several chunks of a shorter length, the others none. A chunk may reach into
///   the next stretch; the two stretches still count as independent, like any two neighbours.
struct TextStretches {
  std::vector<std::vector<std::size_t>>
      chunk_stretch;                 ///< [length][chunk of Length::samples] number of the chunk's stretch
  std::vector<std::size_t> numbers;  ///< numbers of the stretches that hold a chunk, ascending
  std::size_t fewest;                ///< smallest number of stretches that one of the lengths lies in
  std::int64_t scarcest;             ///< this length, in tokens
};

/// With fewer stretches no interval is given: this is the smallest number for which coverage was simulated
/// (docs/analyses/coverage.md).
inline constexpr std::size_t min_stretches = 3;

/// @param lengths  at least one, shortest first, each with a chunk
TextStretches text_stretches(const runfile::Request& request, const std::vector<Length>& lengths);

/// Whether chunk c of a shorter length lies within chunk c of each longer one: nested or spread.
bool is_paired(const runfile::Request& request);

/// Which text the lengths share, and how differences between lengths allow for it, in sentences.
std::string sharing_in_words(const runfile::Request& request, const std::vector<Length>& lengths);

using ByChunk = std::map<std::int64_t, double>;  ///< sample number -> value

/// A difference of means over chunks of two lengths.
struct TextDifference {
  double value;
  Maybe<Estimate> estimate;  ///< the value with its error
  std::string basis;         ///< data behind the error: "5 paired chunks", ...
};

/// Mean of `longer` minus mean of `shorter`, whose chunks share text.
/// - Nested or spread: over the chunks that both have, with the error of the mean of the paired differences.
/// - Consecutive: over all chunks. A jackknife leaves out one stretch of text at a time, at both lengths, so its error
///   includes the covariance due to shared text. Degrees of freedom are those of the length in the fewest stretches.
/// - Consecutive, with a length in fewer than `min_stretches`: the data do not give the covariance. By Cauchy-Schwarz
///   it is at most sqrt(f g) times the product of the two errors, where f and g are the shares of the chunks that hold
///   common text. The error assumes this largest covariance, with the sign that makes the error larger. Degrees of
///   freedom are those of the length with fewer chunks.
///
/// Missing if there is no pair, or if a length has no value. With one pair, or one value at a length, only the error is
/// missing; so it is if nothing but rounding varies. The values are logarithms, or other numbers of about size 1.
Maybe<TextDifference> difference_of_means(const runfile::Request& request, const Length& longer_length,
                                          const ByChunk& longer, const Length& shorter_length, const ByChunk& shorter);

/// The mean of `longer` divided by the mean of `shorter`, with a Student interval of the logarithm of this ratio. Its
/// error is that of difference_of_means() for values relative to their mean. It is not an interval of the ratio of
/// geometric means.
struct TextRatio {
  double ratio;
  Maybe<Interval> interval;
};
/// Missing as difference_of_means(), and if one of the means is not positive.
Maybe<TextRatio> ratio_of_means(const runfile::Request& request, const Length& longer_length, const ByChunk& longer,
                                const Length& shorter_length, const ByChunk& shorter);

}  // namespace gainlens::analyses
