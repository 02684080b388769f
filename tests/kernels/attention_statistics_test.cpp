// The streaming kernel against the oracle: one body over shapes, masks and dtypes.

#include "kernels/attention_testing.h"

#include <fmt/format.h>

#include <cmath>
#include <ostream>

namespace gainlens::kernels {
namespace {

using testing::cast;
using testing::expect_close;
using testing::Inputs;
using testing::random_inputs;
using testing::reference;
using testing::streamed;

/// Which keys are hidden, and what else is done to the scores.
struct Mask {
  std::string name;
  bool causal = true;
  std::optional<std::int64_t> window;
  double soft_cap = 0;
  bool shared_bias = false, head_bias = false;  // both with -inf among them
  bool sink = false;
};

const std::vector<Mask> masks{
    {"causal"},
    {"full", false},
    {"window1", true, 1},
    {"window7", true, 7},
    {"window64", true, 64},
    {"window100", true, 100},
    {"window7both", false, 7},
    {"window100both", false, 100},
    {"softcap", true, {}, 2.5},
    {"bias", true, {}, 0, true},
    {"headbiasfull", false, {}, 0, false, true},
    {"sink", true, {}, 0, false, false, true},
    {"everything", true, 40, 2.5, false, true, true},
};

AttentionOptions options_of(const Mask& mask, std::int64_t heads, std::int64_t length) {
  AttentionOptions options{.causal = mask.causal, .window = mask.window, .soft_cap = mask.soft_cap, .returned = {.per_dimension = true}};
  if (mask.shared_bias || mask.head_bias) {
    at::Tensor bias = testing::seeded_normal({mask.head_bias ? heads : 1, length}, 5);
    bias.masked_fill_(testing::seeded_normal(bias.sizes(), 6) > 0.8, -INFINITY);
    options.key_bias = mask.head_bias ? bias : bias[0];
  }
  if (mask.sink) options.sink_logit = testing::seeded_normal({heads}, 7);
  return options;
}

struct Shape {
  std::int64_t length, head_dim, kv_heads, group;
};

void PrintTo(const Mask& mask, std::ostream* out) {
  *out << mask.name;
}
void PrintTo(const Shape& shape, std::ostream* out) {
  *out << "T = " << shape.length << ", d = " << shape.head_dim;
}

using Case = std::tuple<Shape, Mask>;

class AttentionStatistics : public ::testing::TestWithParam<Case> {
 protected:
  const Shape& shape() const { return std::get<0>(GetParam()); }
  AttentionOptions options() const { return options_of(std::get<1>(GetParam()), shape().kv_heads * shape().group, shape().length); }
  Inputs inputs() const { return random_inputs(shape().length, shape().head_dim, shape().kv_heads, shape().group); }
};

TEST_P(AttentionStatistics, Float64EqualsReference) {
  expect_close(streamed(options(), inputs()), reference(options(), inputs()), 1e-11, 1e-11);
}

// Where a query sees one key, S = 0 is a difference of equal numbers: float32 leaves 1e-7 of them.
double float32_tolerance(const AttentionOptions& options) {
  return options.window == 1 ? 1e-4 : 1e-5;
}

TEST_P(AttentionStatistics, Float32EqualsReference) {
  const Inputs in = cast(inputs(), at::kFloat);
  expect_close(streamed(options(), in), reference(options(), in), float32_tolerance(options()), 1e-6);
}

TEST_P(AttentionStatistics, HalfPrecisionInputsAreComputedInFloat32) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const Inputs in = cast(inputs(), type);
    const QueryStatistics s = streamed(options(), in);
    EXPECT_EQ(s.output.scalar_type(), type);
    expect_close(s, reference(options(), in), float32_tolerance(options()), type == at::kHalf ? 1e-3 : 8e-3);  // the output is rounded
  }
}

TEST_P(AttentionStatistics, BlockedAttentionGivesTheSameOutput) {
  const Inputs in = cast(inputs(), at::kFloat);
  const at::Tensor blocked = attention_blocked(options(), in.query, in.key, in.value);
  EXPECT_LT(testing::error_of_largest(blocked, streamed(options(), in).output), 1e-5);
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  const auto& [shape, mask] = info.param;
  return fmt::format("T{}d{}kv{}g{}{}", shape.length, shape.head_dim, shape.kv_heads, shape.group, mask.name);
}

INSTANTIATE_TEST_SUITE_P(Masks, AttentionStatistics,
                         ::testing::Combine(::testing::Values(Shape{127, 16, 2, 2}), ::testing::ValuesIn(masks)), case_name);
INSTANTIATE_TEST_SUITE_P(Lengths, AttentionStatistics,
                         ::testing::Combine(::testing::Values(Shape{1, 8, 1, 1}, Shape{2, 8, 1, 2}, Shape{63, 8, 1, 1}, Shape{64, 8, 1, 1},
                                                              Shape{65, 8, 1, 1}, Shape{257, 8, 1, 2}, Shape{513, 8, 1, 1}),
                                            ::testing::Values(masks[0], masks[1], masks[5])),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Widths, AttentionStatistics,
                         ::testing::Combine(::testing::Values(Shape{130, 64, 1, 1}, Shape{130, 80, 1, 4}, Shape{130, 128, 2, 1},
                                                              Shape{70, 13, 1, 1}, Shape{70, 1, 1, 1}, Shape{90, 8, 1, 40}),
                                            ::testing::Values(masks[0])),
                         case_name);

// ---- numbers that are hard ----

TEST(AttentionStatisticsNumbers, EqualScoresWeighKeysEqually) {
  Inputs in = cast(random_inputs(300, 16, 1, 1), at::kFloat);
  in.query.zero_();
  const QueryStatistics s = streamed({}, in);
  const at::Tensor visible = at::arange(1, 301).to(at::kFloat);
  EXPECT_LT(testing::relative_error(s.n_eff[0], visible), 1e-6);
  EXPECT_LT(testing::relative_error(s.entropy[0], visible.log()), 1e-6);
  expect_close(s, reference({}, in), 1e-5, 1e-5);
}

TEST(AttentionStatisticsNumbers, OneKeyWithAllTheMass) {
  const Inputs in = cast(random_inputs(200, 16, 1, 1), at::kFloat);
  for (const std::int64_t key : {0, 1, 70, 150}) {
    AttentionOptions options{.key_bias = at::zeros({200})};
    options.key_bias[key] = 120.0;
    expect_close(streamed(options, in), reference(options, in), 1e-4, 1e-6);
  }
}

TEST(AttentionStatisticsNumbers, SinkWithTinyRest) {
  // All but 1e-13 of the mass on key 0, more than float32 resolves in 1 - p_0: the rest must keep its digits.
  const Inputs in = cast(random_inputs(200, 16, 1, 1), at::kFloat);
  AttentionOptions options{.key_bias = at::zeros({200})};
  options.key_bias[0] = 35.0;
  const QueryStatistics s = streamed(options, in), expected = reference(options, in);
  expect_close(s, expected, 1e-5, 1e-5);
  const at::Tensor ratio = s.residual.slice(1, 1) / expected.residual.slice(1, 1).to(at::kFloat);
  EXPECT_LT((ratio - 1).abs().max().item<double>(), 1e-5);  // S itself, about 1e-13, to full relative precision
}

TEST(AttentionStatisticsNumbers, ScoresSpreadOverTenThousand) {
  for (const double sharpness : {300.0, 3000.0}) {
    const Inputs in = random_inputs(300, 16, 1, 2, sharpness);
    expect_close(streamed({}, in), reference({}, in), 1e-9, 1e-9);
  }
}

TEST(AttentionStatisticsNumbers, ConstantValuesHaveNoResidual) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    Inputs in = cast(random_inputs(200, 16, 1, 1), type);
    in.value.fill_(0.1);
    for (const bool causal : {true, false}) {
      const QueryStatistics s = streamed({.causal = causal}, in);
      EXPECT_LT(s.residual.max().item<double>(), 1e-14);
      EXPECT_EQ(s.value_variance.max().item<double>(), 0);
      // S / sv^2 counts as 0: K = (n + nu) / (n + nu + nu).
      EXPECT_LT(testing::relative_error(s.kalman_gain_scaled, (s.n_eff + 1) / (s.n_eff + 2)), 1e-6);
      EXPECT_LT(testing::relative_error(s.output, in.value), 1e-6);
    }
  }
}

TEST(AttentionStatisticsNumbers, LargeCommonMeanOfValues) {
  Inputs in = random_inputs(400, 16, 1, 1);
  in.value = in.value * std::sqrt(1e-3) + 1e3;
  in = cast(in, at::kFloat);
  expect_close(streamed({}, in), reference({}, in), 1e-5, 1e-6);
  EXPECT_NEAR(streamed({}, in).value_variance.mean().item<double>(), 1e-3, 1e-4);
}

TEST(AttentionStatisticsNumbers, PriorsAreUsed) {
  const Inputs in = random_inputs(100, 16, 1, 1);
  const AttentionOptions options{.prior_strength = 2.5, .prior_variance = 0.3, .prior_precision = 7};
  expect_close(streamed(options, in), reference(options, in), 1e-11, 1e-11);
  const AttentionOptions none{.prior_strength = 0, .prior_precision = 2};  // query 0: S = 0, lambda_obs infinite, K = 1
  const QueryStatistics s = streamed(none, in);
  EXPECT_TRUE(std::isinf(s.observation_precision[0][0].item<double>()));
  EXPECT_TRUE(std::isinf(s.log_observation_precision[0][0].item<double>()));
  EXPECT_EQ(s.kalman_gain[0][0].item<double>(), 1);
  EXPECT_LT(testing::relative_error(s.kalman_gain, reference(none, in).kalman_gain), 1e-11);
}

// The closed forms of the method against the oracle, which removes key 0 by brute force.
TEST(AttentionStatisticsNumbers, WithoutFirstFollowsItsFormulas) {
  const Inputs in = random_inputs(150, 16, 1, 1);
  const QueryStatistics s = reference({.returned = {.per_dimension = true}}, in);
  const at::Tensor p0 = s.first_mass[0].select(1, 0).slice(0, 1), n = s.n_eff[0].slice(0, 1);
  const at::Tensor others = 1 - p0;
  EXPECT_LT(testing::relative_error(others * others / (1 / n - p0 * p0), s.without_first_n_eff[0].slice(0, 1)), 1e-9);
  const at::Tensor e = s.output[0].slice(0, 1), v0 = in.value[0][0], mass = p0.unsqueeze(1);
  const at::Tensor mean = (e - mass * v0) / (1 - mass);
  const at::Tensor residual = (s.residual_by_dimension[0].slice(0, 1) + e * e - mass * v0 * v0) / (1 - mass) - mean * mean;
  EXPECT_LT(testing::relative_error(residual.mean(1), s.without_first_residual[0].slice(0, 1)), 1e-9);
}

}  // namespace
}  // namespace gainlens::kernels
