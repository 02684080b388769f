#pragma once

#include "analyses/checks/check.h"
#include "analyses/options.h"
#include "runfile/run_proof.h"
#include "runfile/run_reader.h"

#include <span>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// A sweep that is checked.
struct CheckedSweep {
  const runfile::RunReader& reader;
  runfile::RunProof proof;
  std::string changed = {};  ///< why the files are not those that were written; empty: nothing speaks against it
  Options options = {};
};

/// Neighbouring chunks count as alike from this correlation on, if it is above what chance gives.
inline constexpr double alike_neighbours = 0.3;
/// Fewest chunks of a length: tests of a change and of neighbours need as many.
inline constexpr std::int64_t min_chunks = 3;
/// Fewest chunks by which neighbours can be told to be alike. Over 6 chunks no series has a correlation above 0.623,
/// and 0.650 would be above chance; over 7 chunks the largest is 0.707, and 0.613 is asked for.
inline constexpr std::int64_t min_neighbours = 7;
/// K counts as the scale of values if heads have another order by scaled K: below this rank correlation.
inline constexpr double min_agreement = 0.5;
/// Largest share of the variance of values that rounding may be.
inline constexpr double max_rounding = 0.01;

/// THE list, in the order in which it is printed. A test compares docs/analyses/check.md with it.
std::span<const Check<CheckedSweep>> sweep_checks();

/// The share of the variance of values that is the rounding of the dtype, at least: values of a head have a common
/// offset, and numbers near a large offset lie far apart. 0 where nothing is known, as in a float64 run.
///
/// With m the mean norm of the values, d their size and v their variance, the offset is at least sqrt(m^2 - d v), for a
/// mean of squares is at least the square of the mean. Rounding to p bits moves a number x by at most x 2^-p; as an
/// even distribution that is a variance of (x 2^-p)^2 / 3.
/// @param norm      mean L2 norm of values
/// @param variance  their population variance, mean over dimensions
/// @param bits      of the dtype: 24, 11 or 8
double offset_rounding(double norm, double variance, std::int64_t head_dim, int bits);

}  // namespace gainlens::analyses
