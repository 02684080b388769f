#include "analyses/shared_text.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/quantity.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace gainlens::analyses {
namespace {

using runfile::TextLayout;
using runfile::TextSpan;

std::int64_t overlap(const TextSpan& a, const TextSpan& b) {
  return std::max<std::int64_t>(0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
}

/// The chunk of the longest length that holds most of the span; the first one if two hold the same amount.
std::size_t stretch_of(const TextLayout& layout, std::int64_t longest, const TextSpan& span) {
  std::int64_t best = 0;
  for (std::int64_t chunk = 1; chunk < layout.samples; ++chunk) {
    const std::int64_t here = overlap(span, text_span(layout, longest, chunk)),
                       there = overlap(span, text_span(layout, longest, best));
    if (here > there) best = chunk;
  }
  return static_cast<std::size_t>(best);
}

/// The share of chunks of one length that share text with a chunk of the other.
double shared_part(const TextLayout& layout, std::int64_t tokens, const ByChunk& chunks, std::int64_t other_tokens,
                   const ByChunk& others) {
  std::size_t shared = 0;
  for (const auto& [chunk, value] : chunks) {
    const TextSpan span = text_span(layout, tokens, chunk);
    const bool meets = std::any_of(others.begin(), others.end(), [&](const auto& other) {
      return overlap(span, text_span(layout, other_tokens, other.first)) > 0;
    });
    shared += meets ? 1 : 0;
  }
  return static_cast<double>(shared) / static_cast<double>(chunks.size());
}

std::vector<double> values_of(const ByChunk& chunks) {
  std::vector<double> values;
  for (const auto& [chunk, value] : chunks) values.push_back(value);
  return values;
}

ByChunk relative_to(ByChunk chunks, double unit) {
  for (auto& [chunk, value] : chunks) value /= unit;
  return chunks;
}

Length with_chunks(const Length& length, const ByChunk& chunks) {
  Length result{length.index, length.tokens, {}, 0};
  for (const auto& [chunk, value] : chunks) result.samples.push_back(chunk);
  return result;
}

std::string few_pairs(std::size_t count) {
  return fmt::format("an interval needs at least 2 chunks; there is {}", count);
}

/// Size of the numbers that differences are taken of. Logarithms and relative values have rounding of size 1 at least.
double scale_of(const ByChunk& longer, const ByChunk& shorter) {
  double scale = 1;
  for (const ByChunk* const chunks : {&longer, &shorter}) {
    for (const auto& [chunk, value] : *chunks) scale = std::max(scale, std::abs(value));
  }
  return scale;
}

Maybe<TextDifference> paired_difference(const ByChunk& longer, const ByChunk& shorter) {
  std::vector<double> differences;
  for (const auto& [chunk, value] : longer) {
    if (const auto other = shorter.find(chunk); other != shorter.end()) differences.push_back(value - other->second);
  }
  if (differences.empty())
    return Maybe<TextDifference>::none("no chunk has a finite value both here and at the shortest length");
  const std::size_t pairs = differences.size();
  const bool same = alike(differences, scale_of(longer, shorter));
  return TextDifference{mean(differences),
                        pairs < 2 ? Maybe<Estimate>::none(few_pairs(pairs))
                        : same    ? Maybe<Estimate>::none(same_in_every_chunk)
                                  : Maybe<Estimate>(mean_estimate(differences)),
                        counted(pairs, "paired chunk")};
}

/// Mean of the values whose chunk lies in any other stretch.
double mean_without(const std::vector<double>& values, const std::vector<std::size_t>& stretch_of_chunk,
                    std::size_t left_out) {
  std::vector<double> kept;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (stretch_of_chunk[i] != left_out) kept.push_back(values[i]);
  }
  return mean(kept);
}

}  // namespace

bool is_paired(const runfile::Request& request) {
  return request.nested || request.spread;
}

TextStretches text_stretches(const runfile::Request& request, const std::vector<Length>& lengths) {
  ASSERT(!lengths.empty(), "stretches of no length");
  const TextLayout layout = layout_of(request);
  TextStretches result{{}, {}, 0, 0};
  std::set<std::size_t> all;
  for (const Length& length : lengths) {
    std::set<std::size_t> here;
    auto& stretches = result.chunk_stretch.emplace_back();
    for (const std::int64_t chunk : length.samples) {
      stretches.push_back(stretch_of(layout, lengths.back().tokens, text_span(layout, length.tokens, chunk)));
      here.insert(stretches.back());
    }
    all.insert(here.begin(), here.end());
    if (result.chunk_stretch.size() > 1 && here.size() >= result.fewest) continue;
    result.fewest = here.size();
    result.scarcest = length.tokens;
  }
  result.numbers.assign(all.begin(), all.end());
  return result;
}

Maybe<TextDifference> difference_of_means(const runfile::Request& request, const Length& longer_length,
                                          const ByChunk& longer, const Length& shorter_length, const ByChunk& shorter) {
  if (is_paired(request)) return paired_difference(longer, shorter);
  if (longer.empty() || shorter.empty())
    return Maybe<TextDifference>::none("no chunk has a finite value here or at the shortest length");
  const std::vector<double> x = values_of(longer), y = values_of(shorter);
  const double value = mean(x) - mean(y), scale = scale_of(longer, shorter);
  const std::string counts =
      fmt::format("{} of {} and {} of {}", counted(x.size(), "chunk"), format_count(longer_length.tokens), y.size(),
                  format_count(shorter_length.tokens));
  const TextStretches text =
      text_stretches(request, {with_chunks(shorter_length, shorter), with_chunks(longer_length, longer)});
  if (text.fewest >= min_stretches) {
    std::vector<double> without;
    for (const std::size_t stretch : text.numbers) {
      without.push_back(mean_without(x, text.chunk_stretch[1], stretch) -
                        mean_without(y, text.chunk_stretch[0], stretch));
    }
    return TextDifference{value,
                          alike(without, scale)
                              ? Maybe<Estimate>::none(same_in_every_chunk)
                              : Estimate{value, jackknife_error(without), static_cast<double>(text.fewest - 1)},
                          fmt::format("{} in {} stretches of text", counts, text.numbers.size())};
  }
  const std::size_t fewest = std::min(x.size(), y.size());
  if (fewest < 2) return TextDifference{value, Maybe<Estimate>::none(few_pairs(fewest)), counts};
  const TextLayout layout = layout_of(request);
  const double shared = std::sqrt(shared_part(layout, longer_length.tokens, longer, shorter_length.tokens, shorter) *
                                  shared_part(layout, shorter_length.tokens, shorter, longer_length.tokens, longer));
  const double a = mean_estimate(x).error, b = mean_estimate(y).error;
  const double error = std::sqrt(a * a + b * b + 2 * shared * a * b);
  return TextDifference{value,
                        is_rounding(error, scale) ? Maybe<Estimate>::none(same_in_every_chunk)
                                                  : Estimate{value, error, static_cast<double>(fewest - 1)},
                        fmt::format("{}, with the largest covariance that shared text allows", counts)};
}

Maybe<TextRatio> ratio_of_means(const runfile::Request& request, const Length& longer_length, const ByChunk& longer,
                                const Length& shorter_length, const ByChunk& shorter) {
  if (longer.empty() || shorter.empty())
    return Maybe<TextRatio>::none("no chunk has a finite value here or at the shortest length");
  const double here = mean(values_of(longer)), there = mean(values_of(shorter));
  if (!(here > 0 && there > 0))
    return Maybe<TextRatio>::none("a ratio needs means above 0, here and at the shortest length");
  const auto difference = difference_of_means(request, longer_length, relative_to(longer, here), shorter_length,
                                              relative_to(shorter, there));
  if (!difference) return Maybe<TextRatio>::none(difference.reason());
  const auto& estimate = difference->estimate;
  if (!estimate) return TextRatio{here / there, Maybe<Interval>::none(estimate.reason())};
  const Interval logarithm = student_interval({std::log(here / there), estimate->error, estimate->degrees_of_freedom});
  return TextRatio{here / there, Interval{std::exp(logarithm.low), std::exp(logarithm.high)}};
}

std::string sharing_in_words(const runfile::Request& request, const std::vector<Length>& lengths) {
  if (lengths.size() < 2) return "One length: no text is shared between lengths.";
  if (request.nested) {
    return "Nested: chunk c of a shorter length is the beginning of chunk c of the longest. Changes between lengths "
           "are paired by chunk.";
  }
  if (request.spread) {
    return "Spread: chunk c of a shorter length lies in the middle of chunk c of each longer one. Changes between "
           "lengths are paired by chunk.";
  }
  const Length &shortest = lengths.front(), &longest = lengths.back();
  const TextStretches text = text_stretches(request, {shortest, longest});
  return fmt::format(
      "Consecutive: the chunks of each length follow one another from the start of the text, so lengths share text: "
      "the chunks of {} lie in {} of the {} of {}. The interval of a change between lengths comes from leaving out one "
      "stretch of text at a time, at both lengths. With fewer than {} stretches it assumes the largest covariance that "
      "the shared text allows.",
      format_count(shortest.tokens), text.fewest, counted(longest.samples.size(), "chunk"),
      format_count(longest.tokens), min_stretches);
}

}  // namespace gainlens::analyses
