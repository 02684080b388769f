#include "analyses/equivalence.h"
#include "analyses/gain_theory.h"
#include "analyses/holm.h"
#include "analyses/permutation.h"
#include "core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

namespace gainlens::analyses {
namespace inference_golden_test {

/// Numbers computed by brute force in numpy, SciPy and statsmodels; made by make_inference_golden.py.
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
  EXPECT_NEAR(*found.null_mean, expected["null_mean"].get<double>(), 1e-12);
  ASSERT_TRUE(found.p) << found.p.reason();
  EXPECT_NEAR(*found.p, expected["p"].get<double>(), 1e-12);
  EXPECT_NEAR(*found.min_p, expected["least_p"].get<double>(), 1e-12);
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
    EXPECT_NEAR(*found.exceeds_p, entry["exceeds_p"].get<double>(), 1e-10);
    EXPECT_NEAR(found.interval->low, entry["interval"][0].get<double>(), 1e-10);
    EXPECT_NEAR(found.interval->high, entry["interval"][1].get<double>(), 1e-10);
  }
}

TEST(InferenceGolden, HolmAgreesWithStatsmodels) {
  const Json cases = golden()["holm"];
  ASSERT_EQ(cases.size(), 3u);
  for (const Json& entry : cases) {
    const std::vector<double> adjusted = holm(entry["p"].get<std::vector<double>>());
    ASSERT_EQ(adjusted.size(), entry["adjusted"].size());
    for (std::size_t i = 0; i < adjusted.size(); ++i)
      EXPECT_NEAR(adjusted[i], entry["adjusted"][i].get<double>(), 1e-12);
  }
}

TEST(InferenceGolden, TheoryOnUnseenTextAgreesWithSciPy) {
  const Json cases = golden()["theories"];
  ASSERT_EQ(cases.size(), 2u);
  for (const Json& entry : cases) {
    std::vector<std::vector<GainMeans>> values(entry["n_eff"].size());
    for (std::size_t length = 0; length < values.size(); ++length) {
      for (std::size_t chunk = 0; chunk < entry["n_eff"][length].size(); ++chunk) {
        values[length].push_back(
            {entry["n_eff"][length][chunk], entry["residual"][length][chunk], entry["gain"][length][chunk]});
      }
    }
    const auto found = test_theory(values, {64, 128, 256}, entry["prior_variance"], entry["margin"]);
    ASSERT_TRUE(found) << found.reason();
    ASSERT_EQ(found->lengths.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      const TheoryError& length = found->lengths[i];
      EXPECT_NEAR(length.error, entry["error"][i].get<double>(), 1e-10);
      EXPECT_NEAR(length.interval.low, entry["interval"][i][0].get<double>(), 1e-10);
      EXPECT_NEAR(length.interval.high, entry["interval"][i][1].get<double>(), 1e-10);
      EXPECT_NEAR(*length.log_ratio.p, entry["within_p"][i].get<double>(), 1e-9);
      EXPECT_NEAR(*length.log_ratio.exceeds_p, entry["beyond_p"][i].get<double>(), 1e-9);
    }
  }
}

}  // namespace inference_golden_test
}  // namespace gainlens::analyses
