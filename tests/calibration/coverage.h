#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::testing {

/// How often an interval holds the true value, on simulated chunks, layers and heads.
struct Coverage {
  std::string method;  ///< "mean over chunks, Student", ...
  std::string number;  ///< the number that the interval estimates
  double noise = 0;    ///< noise of a chunk, in standard deviations over heads; 0 if it does not matter
  std::size_t units;   ///< number of chunks of a length, or of layers
  double neighbours;   ///< correlation of neighbouring units, a first-order autoregression
  double nominal;      ///< the stated level of the interval
  double stated;       ///< share of simulations in which an interval is given
  double covered;      ///< share of these intervals that hold the true value; NaN if no interval is given
};

/// Chunk counts and layer counts of the table.
inline const std::vector<std::size_t> chunk_counts = {3, 5, 10, 20};
inline const std::vector<std::size_t> layer_counts = {10, 20, 32};
inline const std::vector<std::size_t> alike_counts = {8, 10, 20};  ///< chunks whose neighbours are alike
inline constexpr double neighbour_correlation = 0.3;
inline const std::vector<double> alike_correlations = {0, 0.3, 0.5, 0.7};
inline constexpr double layer_correlation = 0.7;
inline const std::vector<double> layer_sizes = {0, 0.5, 1, 2, 2.8};  ///< standard deviations of a layer's ln(size)

/// Student intervals of a mean over chunks: at 95%, and at 90% as in the equivalence test.
std::vector<Coverage> cover_means(std::size_t chunks, double neighbours, std::int64_t simulations, std::uint64_t seed);
/// Change between two lengths whose chunks share text, as a difference and as a ratio of means: nested, consecutive 4k
/// and 8k, consecutive 1k and 8k. 80% of the deviation of a long chunk's value is the sum of its 1k parts.
std::vector<Coverage> cover_changes(std::size_t chunks, double neighbours, std::int64_t simulations,
                                    std::uint64_t seed);
/// Correlations over 60 heads in 6 layers, whose values carry the noise of the chunks. Two methods: leaving out text,
/// and the percentile interval of a bootstrap of chunks.
/// @param consecutive  two lengths, where a chunk of the longer holds two chunks of the shorter; otherwise one length
std::vector<Coverage> cover_correlations(std::size_t chunks, bool consecutive, double noise, double neighbours,
                                         std::int64_t simulations, std::uint64_t seed);
/// Mean over chunks whose neighbours are alike. Two methods that are not used: the self-normalised interval, at least
/// as wide as Student's, and Student's with a variance inflated by the measured correlation.
std::vector<Coverage> cover_alike_chunks(std::size_t chunks, double neighbours, std::int64_t simulations,
                                         std::uint64_t seed);
/// Correlations over layers of 8 heads that share half of their variance. Three methods, of which none is used: leaving
/// out layers with Student's factor, the same with a larger error and fewer degrees of freedom, and the percentile
/// interval of a bootstrap of layers.
/// @param sizes  standard deviation of the logarithm of a layer's size, by which all its numbers are multiplied
std::vector<Coverage> cover_layers(std::size_t layers, double sizes, double neighbours, std::int64_t simulations,
                                   std::uint64_t seed);

/// Findings of `gate-arms` over documents whose change at the trained length is lognormal and just the margin on
/// average, so that both are wrong: "worse by more than the margin", which contradicts, with a long tail downwards, and
/// "not worse by the margin" upwards. `stated` is the share of runs whose skewness allows a ruling, `covered` that of
/// these without the wrong finding.
/// @param sigma  of the lognormal; 0: normal
std::vector<Coverage> cover_rulings(std::size_t documents, double sigma, std::int64_t simulations, std::uint64_t seed);
/// Random heads of `inactive-heads`, of which some sets hold a vital head and cost far more: Student's interval of
/// their mean, the interval of the share of sets that do better than a score, and the p of a score that is one of them.
/// @param hits  share of sets with a vital head
std::vector<Coverage> cover_random_heads(std::size_t draws, double hits, std::int64_t simulations, std::uint64_t seed);
/// One line for each row of the two: in how many runs there is a ruling or an interval, and in how many it is wrong.
std::string claims_markdown(const std::vector<Coverage>& rows);

/// All rows of the table. Each cell has its own random stream, so that the table does not depend on the order.
std::vector<Coverage> coverage_table(std::int64_t simulations);
std::string coverage_csv(const std::vector<Coverage>& rows);
/// Three tables: chunks, chunks whose neighbours are alike, layers. One line for each method, number and noise. The
/// columns are the correlations of neighbours, and for each of them the unit counts.
std::string coverage_markdown(const std::vector<Coverage>& rows);

}  // namespace gainlens::testing
