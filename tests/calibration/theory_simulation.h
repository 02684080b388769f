#pragma once

#include <cstddef>
#include <cstdint>

namespace gainlens::testing {

/// Chunks of four lengths whose n_eff and S vary by 10%, each with its K: half of a chunk's noise is the same at every
/// length, as where lengths share their text. The formula is right of the means that infinitely many chunks have, but
/// for a stated error.
struct TheoryModel {
  std::size_t chunks = 5;
  double correlation = 0;     ///< of neighbouring chunks' noise
  double error = 0;           ///< K_opt / K - 1 in the limit of many chunks
  bool every_length = false;  ///< the error is that of every length; otherwise of the longest alone
};

/// What the rulings on the formula are, margin 1%.
struct TheoryRates {
  double within = 0;  ///< share of simulations in which the error is shown to be within the margin at every length
  double beyond = 0;  ///< shown to be beyond it at some length, Holm-corrected
};

TheoryRates theory_rates(const TheoryModel& model, std::int64_t simulations, std::uint64_t seed);

inline constexpr double simulated_margin = 0.01;

}  // namespace gainlens::testing
