#include "runfile/work_shares.h"

#include "core/check.h"

#include <algorithm>
#include <numeric>

namespace gainlens::runfile {

std::vector<std::vector<std::size_t>> balanced_shares(std::span<const double> costs, std::int64_t size) {
  ASSERT(size >= 1, "work split among {} processes", size);
  std::vector<std::size_t> longest_first(costs.size());
  std::iota(longest_first.begin(), longest_first.end(), std::size_t{0});
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });

  std::vector<std::vector<std::size_t>> shares(static_cast<std::size_t>(size));
  std::vector<double> loads(shares.size(), 0.0);
  for (const std::size_t piece : longest_first) {
    const auto rank = static_cast<std::size_t>(std::min_element(loads.begin(), loads.end()) - loads.begin());
    shares[rank].push_back(piece);
    loads[rank] += costs[piece];
  }
  for (auto& share : shares) std::sort(share.begin(), share.end());
  return shares;
}

}  // namespace gainlens::runfile
