#include "runfile/process_group.h"

#include "core/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace gainlens::runfile {
namespace work_shares_test {

using ::testing::ElementsAre;

TEST(WorkShares, ByHand) {
  // 7 to rank 0, 5 to rank 1, 4 to rank 1 (5 < 7), 3 to rank 0 (7 < 9), 2 to rank 1 (9 < 10).
  EXPECT_THAT(balanced_shares(std::vector{2.0, 7.0, 3.0, 5.0, 4.0}, 2),
              ElementsAre(ElementsAre(1, 2), ElementsAre(0, 3, 4)));
}

TEST(WorkShares, EqualPiecesGoRoundInOrder) {
  EXPECT_THAT(balanced_shares(std::vector{1.0, 1.0, 1.0, 1.0, 1.0}, 2),
              ElementsAre(ElementsAre(0, 2, 4), ElementsAre(1, 3)));
}

TEST(WorkShares, MoreProcessesThanPieces) {
  EXPECT_THAT(balanced_shares(std::vector{1.0}, 3), ElementsAre(ElementsAre(0), ElementsAre(), ElementsAre()));
  EXPECT_THAT(balanced_shares({}, 2), ElementsAre(ElementsAre(), ElementsAre()));
}

TEST(WorkShares, EveryPieceOnceAndBalancedWithinTheBound) {
  Random random(7);
  for (std::int64_t size = 1; size <= 9; ++size) {
    std::vector<double> costs(40);
    for (double& cost : costs) cost = 1 + 99 * random.uniform();
    std::vector<std::size_t> seen;
    double busiest = 0;
    for (const auto& share : balanced_shares(costs, size)) {
      double load = 0;
      for (const std::size_t piece : share) load += costs[piece];
      busiest = std::max(busiest, load);
      seen.insert(seen.end(), share.begin(), share.end());
    }
    std::sort(seen.begin(), seen.end());
    std::vector<std::size_t> all(costs.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    EXPECT_EQ(seen, all);
    // No split is better than an even one.
    EXPECT_LE(busiest, 4.0 / 3 *
                           std::max(std::accumulate(costs.begin(), costs.end(), 0.0) / static_cast<double>(size),
                                    *std::max_element(costs.begin(), costs.end())));
  }
}

}  // namespace work_shares_test
}  // namespace gainlens::runfile
