#include "kernels/streaming/top_scores.h"

#include <algorithm>
#include <limits>

namespace gainlens::kernels {

template <typename Real>
void TopScores<Real>::clear() const {
  std::fill_n(scores, count, -std::numeric_limits<Real>::infinity());
  std::fill_n(keys, count, std::int64_t{-1});
}

template <typename Real>
void TopScores<Real>::add(const Real* found, std::int64_t begin, std::int64_t end, std::int64_t first_key) const {
  constexpr std::int64_t together =
      32;  // few scores enter the list: whole groups are passed over without a branch each
  Real least = scores[count - 1];
  const auto insert = [&](std::int64_t i) {
    std::int64_t place = count - 1;
    for (; place > 0 && scores[place - 1] < found[i]; --place) {
      scores[place] = scores[place - 1];
      keys[place] = keys[place - 1];
    }
    scores[place] = found[i];
    keys[place] = first_key + i;
    least = scores[count - 1];
  };
  std::int64_t i = begin;
  for (; i + together <= end; i += together) {
    unsigned any = 0;
    for (std::int64_t j = 0; j < together; ++j) any |= found[i + j] > least ? 1U : 0U;
    if (any == 0) continue;
    for (std::int64_t j = i; j < i + together; ++j)
      if (found[j] > least) insert(j);
  }
  for (; i < end; ++i)
    if (found[i] > least) insert(i);
}

template struct TopScores<float>;
template struct TopScores<double>;

}  // namespace gainlens::kernels
