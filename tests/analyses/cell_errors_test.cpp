
#include "analyses/gain_theory.h"
#include "analyses/synthetic_run.h"
#include "support/shared_data.h"

#include <gtest/gtest.h>

namespace gainlens::analyses {
namespace cell_errors_test {

using gainlens::testing::CellKey;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;

/// d = 2, so sigma0^2 = 0.5. S = 0.5 and n_eff = 1, 3 give lambda* = 2, 4 at 16 and 32 tokens. K(16) = 0.5 requires
/// lambda = 2, which predicts K(32) = 2/3. The measured K(32) is `gain(chunk, head)`.
SyntheticRun theory_run(std::int64_t samples, const std::function<double(std::int64_t, std::int64_t)>& gain) {
  SyntheticRun run;
  run.lengths = {16, 32};
  run.samples = samples;
  run.layers = 1;
  run.heads = run.kv_heads = 2;
  run.head_dim = 2;
  run.value = [gain](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/n_eff") return key.length == 16 ? 1.0 : 3.0;
    if (key.name == "summary/residual") return 0.5;
    if (key.name == "summary/kalman_gain") return key.length == 16 ? 0.5 : gain(key.sample, key.head);
    return std::nullopt;
  };
  return run;
}

TEST(CellErrors, OneLengthPredictsNothing) {
  const TemporaryFolder folder;
  SyntheticRun run = theory_run(4, [](std::int64_t, std::int64_t) { return 0.6; });
  run.lengths = {16};
  EXPECT_EQ(cell_errors(write_run(folder.path() / "run", run), {}).reason(),
            "only one length has a complete chunk; a prediction needs a second one");
}

TEST(CellErrors, EachHeadHasItsOwn) {
  const TemporaryFolder folder;
  const auto reader = write_run(
      folder.path() / "run", theory_run(1, [](std::int64_t, std::int64_t head) { return head == 0 ? 2.0 / 3 : 0.8; }));
  const auto errors = cell_errors(reader, {});
  ASSERT_TRUE(errors) << errors.reason();
  ASSERT_EQ(errors->cells.size(), 2u);
  EXPECT_NEAR(errors->cells[0].max_relative_error, 0, 1e-12);
  EXPECT_NEAR(errors->worst.max_relative_error, 1.0 / 6, 1e-12);
  EXPECT_EQ(errors->worst.head, 1);
  EXPECT_NEAR(errors->median_error, 1.0 / 12, 1e-12);
  EXPECT_EQ(errors->better_than_constant, 2u);
}

TEST(CellErrors, HeadWithAGainOfOneIsLeftOut) {
  const TemporaryFolder folder;
  SyntheticRun run = theory_run(1, [](std::int64_t, std::int64_t) { return 0.6; });
  const auto planted_value = run.value;
  run.value = [planted_value](const CellKey& key) -> std::optional<double> {
    if (key.name == "summary/kalman_gain" && key.head == 1) return 1.0;
    return planted_value(key);
  };
  const auto errors = cell_errors(write_run(folder.path() / "run", run), {});
  EXPECT_EQ(errors->left_out, 1u);
  EXPECT_EQ(errors->cells.size(), 1u);
}

}  // namespace cell_errors_test
}  // namespace gainlens::analyses
