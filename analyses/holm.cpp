#include "analyses/holm.h"

#include "core/check.h"

#include <algorithm>
#include <numeric>

namespace gainlens::analyses {

std::vector<double> holm(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;  // adjusted p so far: the next one is at least as large
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double each = p[order[rank]];
    ASSERT(each >= 0 && each <= 1, "a p of {}", each);
    largest = std::max(largest, std::min(1.0, each * static_cast<double>(p.size() - rank)));
    adjusted[order[rank]] = largest;
  }
  return adjusted;
}

std::vector<Measured> holm_where_present(std::span<const Measured> p) {
  std::vector<double> present;
  for (const Measured& each : p) {
    if (each) present.push_back(*each);
  }
  const std::vector<double> corrected = holm(present);
  std::vector<Measured> adjusted(p.begin(), p.end());
  std::size_t next = 0;
  for (Measured& each : adjusted) {
    if (each) each = corrected[next++];
  }
  return adjusted;
}

}  // namespace gainlens::analyses
