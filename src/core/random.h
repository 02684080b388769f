#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace gainlens {

/// Random numbers that are the same on every machine and with every standard library. The C++ standard fixes the output
/// of the engine, but not the distributions of <random>. So bounded numbers are drawn here.
class Random {
 public:
  /// @param stream  different streams of one seed give unrelated numbers
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0);

  std::uint64_t bits() { return engine_(); }
  /// Uniform in [0, bound). @param bound  at least 1
  std::uint64_t below(std::uint64_t bound);
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

  /// Fisher-Yates.
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[static_cast<std::size_t>(below(i))]);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace gainlens
