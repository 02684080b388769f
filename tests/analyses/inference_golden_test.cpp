#include "analyses/equivalence.h"
#include "analyses/permutation.h"
#include "core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

namespace gainlens::analyses {
namespace {

/// Brute force in numpy and SciPy; made by make_inference_golden.py.
Json golden() {
  return read_json_file(std::filesystem::path(GAINLENS_SOURCE_DIR) / "tests/analyses/inference_golden.json");
}

ClusteredPairs pairs_of(const Json& entry) {
  ClusteredPairs pairs;
  pairs.group_size = entry["group"];
  for (std::size_t layer = 0; layer < entry["x"].size(); ++layer) {
    for (std::size_t head = 0; head < entry["x"][layer].size(); ++head) {
      pairs.x.push_back(entry["x"][layer][head]);
      pairs.y.push_back(entry["y"][layer][head]);
      pairs.layer.push_back(layer);
      pairs.head.push_back(head);
    }
  }
  return pairs;
}

void expect_equal(const TestedStatistic& found, const Json& expected) {
  EXPECT_NEAR(*found.value, expected["value"].get<double>(), 1e-12);
  ASSERT_TRUE(found.p) << found.p.reason();
  EXPECT_NEAR(*found.p, expected["p"].get<double>(), 1e-12);
  EXPECT_NEAR(*found.least_p, expected["least_p"].get<double>(), 1e-12);
}

TEST(InferenceGolden, PermutationsAgreeWithBruteForce) {
  const Json cases = golden()["permutations"];
  ASSERT_GE(cases.size(), 5u);
  for (const Json& entry : cases) {
    const ClusteredPairs pairs = pairs_of(entry);
    const PermutationTest test =
        entry["test"] == "shift" ? shift_layers(pairs, std::nullopt) : permute_blocks(pairs, {.permutations = 20'000});
    EXPECT_TRUE(test.exact);
    EXPECT_EQ(test.arrangements, entry["results"][0]["arrangements"].get<double>());
    expect_equal(test.pearson, entry["results"][0]);
    expect_equal(test.spearman, entry["results"][1]);
  }
}

TEST(InferenceGolden, EquivalenceAgreesWithSciPy) {
  const Json cases = golden()["equivalences"];
  ASSERT_EQ(cases.size(), 3u);
  for (const Json& entry : cases) {
    const Equivalence found = test_equivalence(entry["differences"].get<std::vector<double>>(), entry["margin"]);
    EXPECT_NEAR(*found.p, entry["p"].get<double>(), 1e-10);
    EXPECT_NEAR(*found.difference_p, entry["difference_p"].get<double>(), 1e-10);
    EXPECT_NEAR(found.interval->low, entry["interval"][0].get<double>(), 1e-10);
    EXPECT_NEAR(found.interval->high, entry["interval"][1].get<double>(), 1e-10);
  }
}

}  // namespace
}  // namespace gainlens::analyses
