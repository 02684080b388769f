#pragma once

#include <cstddef>
#include <cstdint>

namespace gainlens::testing {

/// Chunks of four lengths, whose n_eff and S vary by 10%, each with its K. Half of the noise of a chunk is the same at
/// every length, as if the lengths shared their text. In the limit of infinitely many chunks, the formula holds for the
/// means, except for a given error.
struct TheoryModel {
  std::size_t chunks = 5;
  double correlation = 0;     ///< correlation of the noise of neighbouring chunks
  double error = 0;           ///< K_opt / K - 1 in the limit of many chunks
  bool every_length = false;  ///< true: every length has this error; false: only the longest
};

/// The decisions about the formula, with a margin of 1%.
struct TheoryRates {
  double within = 0;  ///< share of simulations in which the error is shown to be within the margin at every length
  double beyond = 0;  ///< share in which it is shown to be beyond the margin at some length, Holm-corrected
};

TheoryRates theory_rates(const TheoryModel& model, std::int64_t simulations, std::uint64_t seed);

inline constexpr double simulated_margin = 0.01;

}  // namespace gainlens::testing
