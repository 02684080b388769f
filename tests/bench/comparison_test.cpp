#include "bench/comparison.h"
#include "bench/comparison_table.h"
#include "bench/figures.h"

#include "core/error.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::bench {
namespace comparison_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// A result made by hand: one method takes `seconds` for a shape.
MethodResult took(std::string_view name, double seconds, double operations, std::int64_t peak) {
  return {.name = std::string(name),
          .times = RunTimes{seconds, 0.9 * seconds, 1.3 * seconds, 5},
          .reason = "",
          .operations = operations,
          .peak_bytes = peak};
}

Comparison hand_made() {
  CaseResult plain{.shape = {.length = 1024}, .methods = {}};
  plain.methods = {took(method::sdpa, 0.5, 2e9, 1 << 20),
                   took(method::statistics, 0.6, 3e9, 3 << 20),
                   {.name = std::string(method::composed), .times = {}, .reason = "not in this build"},
                   took(method::matrix_product, 0.1, 1e9, 0)};
  CaseResult window = plain;
  window.shape.window = 512;
  return {.machine = {"some processor", "AVX2", "2.11.0", 2}, .copy_rate = 1e10, .cases = {plain, window}};
}

TEST(Comparison, RatiosAreOfMedians) {
  const CaseResult result = hand_made().cases.front();
  EXPECT_DOUBLE_EQ(*result.ratio_to_sdpa(method::statistics), 1.2);
  EXPECT_EQ(result.ratio_to_sdpa(method::composed), std::nullopt);
  EXPECT_EQ(result.measured(method::all_fields), nullptr);
}

TEST(Comparison, JsonHoldsEverythingAndIsReadBack) {
  const OrderedJson json = to_json(hand_made());
  EXPECT_EQ(json["cases"][0]["methods"]["statistics"]["ratio_to_sdpa"], 1.2);
  EXPECT_EQ(json["cases"][0]["methods"]["statistics"]["gflops"], 5);
  EXPECT_TRUE(json["cases"][0]["methods"]["composed"]["seconds"].is_null());
  EXPECT_EQ(json["cases"][1]["window"], 512);
  const Comparison read = comparison_of(parse_json(json.dump(), "test"), "test");
  EXPECT_EQ(to_json(read).dump(), json.dump());
}

TEST(Comparison, OtherJsonIsNamed) {
  const auto read = [](const char* text) { return [text] { comparison_of(parse_json(text, "f.json"), "f.json"); }; };
  EXPECT_THAT(read("{}"), ThrowsMessage<InvalidArgument>(HasSubstr("f.json: not what --json writes")));
  EXPECT_THAT(read(R"({"machine": 3})"), ThrowsMessage<InvalidArgument>(HasSubstr("f.json: not what --json writes")));
}

TEST(ComparisonTable, ShowsTimesRatiosAndReasons) {
  const Comparison comparison = hand_made();
  const std::string table = case_table(comparison.cases.back());
  EXPECT_THAT(table, HasSubstr("T 1k, 16 query heads, 16 key/value heads, d 128, window 512, float32\n"));
  EXPECT_THAT(table, HasSubstr("  statistics          0.6000  20.0%     5       5.0    1.200    3.0 MiB\n"));
  EXPECT_THAT(table, HasSubstr("-  not in this build\n"));
}

TEST(ComparisonTable, RooflineIsTheShareOfTheProductsRate) {
  Comparison comparison = hand_made();
  // The product does 10 GFLOP/s, SDPA 4, our kernel 5. 4 x 16 x 1024 x 128 floats at 10 GB/s take 3.36 ms of 600.
  EXPECT_THAT(roofline_table(comparison), HasSubstr("10.0     40%         50%           -        89      0.6%"));
  comparison.copy_rate.reset();
  EXPECT_EQ(roofline_table(comparison), "");
}

TEST(CompareMethods, EveryMethodRunsAndIsCounted) {
  const AttentionCase shape{.length = 64, .heads = 4, .kv_heads = 2, .head_dim = 16, .window = 16};
  const CaseResult result = compare_methods(shape, {.matrix_product = false}, {.repeats = 2});
  for (const std::string_view name : {method::sdpa, method::statistics, method::all_fields, method::materialised}) {
    const MethodResult* measured = result.measured(name);
    ASSERT_NE(measured, nullptr) << name;
    EXPECT_EQ(measured->times->runs, 2);
    EXPECT_GE(measured->peak_bytes, 4 * 64 * 16 * 4) << name;  // at least the output
  }
  EXPECT_GE(result.measured(method::sdpa)->peak_bytes, 64 * 64);                  // its mask
  EXPECT_GE(result.measured(method::materialised)->peak_bytes, 2 * 64 * 64 * 4);  // scores and weights of a head
  EXPECT_EQ(result.measured(method::statistics)->operations, product_operations(shape, 3));
}

TEST(Figures, MethodsBecomePointsButTheMatrixProduct) {
  const auto points = performance_points(hand_made().cases.back());
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[1].method, "statistics");
  EXPECT_EQ(points[1].window, 512);
  EXPECT_DOUBLE_EQ(points[1].ratio, 1.2);
  EXPECT_EQ(points[1].peak_bytes, 3 << 20);
}

TEST(Figures, AreDrawn) {
  const gainlens::testing::TemporaryFolder folder;
  EXPECT_THAT(draw_figures(hand_made(), folder.path() / "new"),
              ElementsAre("performance-ratio.svg", "performance-ratio.pdf", "performance-ratio.png",
                          "performance-cost.svg", "performance-cost.pdf", "performance-cost.png"));
  EXPECT_THAT([&] { draw_figures({}, folder.path()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("--plot: nothing was measured")));
}

}  // namespace comparison_test
}  // namespace gainlens::bench
