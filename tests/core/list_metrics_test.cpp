#include "core/list_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gainlens {
namespace list_metrics_test {

// Ten items with the training counts 0, 1, 2, ... 9, sum 45: the most frequent fifth are the items 9 and 10.
const std::vector<std::int64_t> counts = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

TEST(ListMetrics, AreThoseOfHandWorkedLists) {
  const std::vector<std::int32_t> lists = {10, 9, 1, 10, 4, 0};
  const auto found = metrics_of_lists(lists, counts);
  EXPECT_DOUBLE_EQ(found.at("coverage@10"), 0.4);
  EXPECT_DOUBLE_EQ(found.at("popular@10"), 3.0 / 5);
  // An item that is in no training counts as one that is in training once.
  const double bits = 2 * std::log2(45.0 / 9) + std::log2(45.0 / 8) + std::log2(45.0) + std::log2(45.0 / 3);
  EXPECT_NEAR(found.at("novelty@10"), bits / 5, 1e-12);
}

TEST(ListMetrics, HaveTheNamesThatAreListed) {
  const auto found = metrics_of_lists(std::vector<std::int32_t>{1}, counts);
  EXPECT_EQ(found.size(), list_metrics().size());
  for (const ListMetric& metric : list_metrics()) EXPECT_TRUE(found.contains(std::string(metric.name)));
}

// Of equal counts the larger id is the more frequent one, as in the strata of items.
TEST(ListMetrics, TheFifthIsThatOfTheStrata) {
  const std::vector<std::int64_t> equal(5, 1);
  EXPECT_EQ(metrics_of_lists(std::vector<std::int32_t>{5}, equal).at("popular@10"), 1);
  EXPECT_EQ(metrics_of_lists(std::vector<std::int32_t>{4}, equal).at("popular@10"), 0);
}

}  // namespace list_metrics_test
}  // namespace gainlens
