#include "analyses/series.h"

#include "analyses/synthetic_run.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gainlens::analyses {
namespace series_test {

using gainlens::testing::CellKey;
using gainlens::testing::refusal_of;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;

/// A run whose mean entropy is `level` in every chunk of even number and twice that in the others.
runfile::RunReader run_at(const TemporaryFolder& folder, char weights, double level,
                          const std::vector<std::int64_t>& lengths = {64, 128}) {
  SyntheticRun run;
  run.lengths = lengths;
  run.weights = weights;
  run.layers = 2;
  run.value = [level](const CellKey& key) -> std::optional<double> {
    if (key.name != "summary/entropy") return std::nullopt;
    return key.sample % 2 == 0 ? level : 2 * level;
  };
  return write_run(folder.path() / std::string(1, weights), run);
}

const PairedDifference& entropy_of(const SeriesPoint& point) {
  return *std::ranges::find(point.quantities, "entropy", [](const auto& one) { return one.quantity.name; });
}

TEST(Series, StandsInTheOrderOfItsSteps) {
  const TemporaryFolder folder;
  const auto late = run_at(folder, 'c', 3), first = run_at(folder, 'a', 1, {64, 128, 256}),
             second = run_at(folder, 'b', 2);
  const std::vector<SeriesRun> runs = {{"step-1000", late}, {"step-0", first}, {"v2-step-20", second}};
  const Series found = series(runs, /*by_step=*/true);
  EXPECT_EQ(found.tokens, 128);
  ASSERT_EQ(found.points.size(), 3u);
  EXPECT_EQ(found.points[0].label, "step-0");
  EXPECT_EQ(found.points[1].place, 20);
  EXPECT_EQ(found.points[2].place, 1000);
  // Chunks 0, 1, 2 hold level, 2 level, level.
  EXPECT_NEAR(*entropy_of(found.points[0]).second, 4.0 / 3, 1e-12);
  EXPECT_NEAR(*entropy_of(found.points[2]).second, 4.0, 1e-12);
  EXPECT_NEAR(*entropy_of(found.points[2]).difference, 8.0 / 3, 1e-12);
  EXPECT_FALSE(entropy_of(found.points[0]).difference);
  EXPECT_TRUE(entropy_of(found.points[1]).interval);
  EXPECT_EQ(to_json(found).at("runs").at(1).at("step"), 20);

  const Series by_name = series(runs, /*by_step=*/false);
  EXPECT_EQ(by_name.points[0].label, "step-1000");
  EXPECT_EQ(by_name.points[2].place, 2);
}

TEST(Series, RefusesWhatIsNoSeries) {
  const TemporaryFolder folder;
  const auto a = run_at(folder, 'a', 1), b = run_at(folder, 'b', 2), apart = run_at(folder, 'c', 1, {256});
  const auto refused = [](const std::vector<SeriesRun>& runs, bool by_step) {
    return refusal_of([&] { series(runs, by_step); });
  };
  EXPECT_THAT(refused({{"one", a}}, false), HasSubstr("1 runs; a series has 2 to 50"));
  EXPECT_THAT(refused({{"base", a}, {"10", b}}, true), HasSubstr("'base' has no number"));
  EXPECT_THAT(refused({{"a-7", a}, {"b-7", b}}, true), HasSubstr("are both at step 7"));
  EXPECT_THAT(refused({{"same", a}, {"same", b}}, false), HasSubstr("two runs are called 'same'"));
  EXPECT_THAT(refused({{"x", a}, {"y", apart}}, false), HasSubstr("no context length in common"));
  EXPECT_THAT(refusal_of([] { step_of("n99999999999999999999"); }), HasSubstr("is too large"));
  for (const char* label :
       {"1e3", "2E+04", "5e-1", "step-1.5", "ck-1,000", "ck-1_000", "ck_5k", "ck-0x10", "ck-.5", "ck--5", "-5", "5K"})
    EXPECT_THAT(refusal_of([&] { step_of(label); }), HasSubstr("no step in digits alone")) << label;
  EXPECT_EQ(step_of("ck-7-kept"), 7);
  EXPECT_EQ(step_of("model.1000"), 1000);
  EXPECT_EQ(step_of("v1.2-step300"), 300);
  EXPECT_EQ(step_of("base7"), 7);
  EXPECT_EQ(step_of("step2000-of-3"), 3);
  EXPECT_EQ(step_of("2000steps"), 2000);
}

}  // namespace series_test
}  // namespace gainlens::analyses
