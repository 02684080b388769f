#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::kernels {

/// Dropout whose mask is a function of numbers, not of a generator's state. So a mask can be computed again in a
/// backward pass, and a part of a batch draws the same mask as the whole batch does.
struct Dropout {
  double rate = 0;             ///< share of the elements that become 0, in [0, 1); the others are divided by 1 - rate
  std::uint64_t key = 0;       ///< another key for each step and each place in the model
  std::int64_t first_row = 0;  ///< number of the first row: a part of a batch gives the number of rows before it
};

/// The random bits of one row. Column c has the 32 bits of its half of mixed(state + (c / 2) step).
/// Source: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014), with the constants of Stafford's variant 13.
class DropoutRow {
 public:
  /// @param row  number of the row in the whole batch
  DropoutRow(const Dropout& dropout, std::int64_t row)
      : state_(mixed(dropout.key + (static_cast<std::uint64_t>(row) + 1) * row_step)),
        threshold_(threshold(dropout.rate)),
        factor_(static_cast<float>(1 / (1 - dropout.rate))) {}

  /// What the elements of the columns 0 to count - 1 are multiplied by: 0 or 1 / (1 - rate).
  void factors(std::int64_t count, float* to) const {
    std::uint64_t state = state_;
    std::int64_t column = 0;
    for (; column + 1 < count; column += 2, state += column_step) {
      const std::uint64_t bits = mixed(state);
      to[column] = factor((bits & half));
      to[column + 1] = factor(bits >> 32);
    }
    if (column < count) to[column] = factor(mixed(state) & half);
  }

  static constexpr std::uint64_t half = 0xFFFFFFFF;
  static constexpr std::uint64_t row_step = 0x9E3779B97F4A7C15, column_step = 0xD1B54A32D192ED03;
  static constexpr std::uint64_t first_multiplier = 0xBF58476D1CE4E5B9, second_multiplier = 0x94D049BB133111EB;
  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * first_multiplier;
    z = (z ^ (z >> 27)) * second_multiplier;
    return z ^ (z >> 31);
  }
  /// Bits below it are dropped.
  static std::uint64_t threshold(double rate) { return static_cast<std::uint64_t>(rate * 0x1.0p32); }

 private:
  /// The factor of a weight. It is found without a branch, which would be mispredicted half of the time.
  float factor(std::uint64_t bits) const { return factor_ * static_cast<float>(bits >= threshold_); }

  std::uint64_t state_, threshold_;
  float factor_;
};

/// The factors of DropoutRow as a tensor, on any device.
/// @param rows     int64, the numbers of the rows, of any shape
/// @param columns  their length
/// @returns [rows.., columns], in the type and on the device of `like`
at::Tensor dropout_factors(const Dropout& dropout, const at::Tensor& rows, std::int64_t columns,
                           const at::Tensor& like);

/// x with some elements set to 0 and the others divided by 1 - rate. libtorch's autograd can differentiate it once.
/// @param x  [row, column], float32 or float64, on any device
/// @throws InternalError  a rate outside of [0, 1)
at::Tensor dropped(const at::Tensor& x, const Dropout& dropout);

}  // namespace gainlens::kernels
