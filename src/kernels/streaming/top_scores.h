#pragma once

#include <cstdint>

namespace gainlens::kernels {

/// The largest scores of one query so far and their keys, the largest first. Of equal scores the one that came first is
/// kept, and comes first.
template <typename Real>
struct TopScores {
  Real* scores;        ///< [count], -inf where there is none yet
  std::int64_t* keys;  ///< [count], -1 where there is none yet
  std::int64_t count;  ///< how many are kept, at least 1

  void clear() const;

  /// @param found      [begin, end) are those of the visible keys; -inf hides a key
  /// @param first_key  the key of found[0]
  void add(const Real* found, std::int64_t begin, std::int64_t end, std::int64_t first_key) const;
};

}  // namespace gainlens::kernels
