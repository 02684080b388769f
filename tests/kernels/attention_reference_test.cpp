// Tests the oracle on cases that are small enough to be computed by hand.

#include "kernels/attention_testing.h"

#include "core/error.h"

#include <gmock/gmock.h>

#include <cmath>

namespace gainlens::kernels {
namespace attention_reference_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

at::Tensor column(std::vector<double> values) {
  return at::tensor(values).to(at::kDouble).view({1, -1, 1});
}

double at_query(const at::Tensor& field, std::int64_t query) {
  return field[0][query].item<double>();
}

/// One head of dimension 1 and three positions. The queries are zero, so that key_bias gives the scores. The weights
/// before normalising are 1, 2, 1.
struct ThreeKeys {
  AttentionOptions options{.causal = true, .key_bias = at::tensor({0.0, std::log(2.0), 0.0}).to(at::kDouble)};
  at::Tensor query = column({0, 0, 0}), key = column({1, 1, 1}), value = column({1, 3, 5});

  QueryStatistics run() const { return attention_statistics_reference(options, query, key, value); }
};

TEST(AttentionReference, ThreeKeysByHand) {
  const QueryStatistics s = ThreeKeys().run();
  // Query 2: p = (1/4, 1/2, 1/4), e = 3, S = (4 + 0 + 4) / 4 = 2, n_eff = 1 / (1/16 + 1/4 + 1/16) = 8/3.
  EXPECT_DOUBLE_EQ(s.output[0][2][0].item<double>(), 3);
  EXPECT_DOUBLE_EQ(at_query(s.n_eff, 2), 8.0 / 3);
  EXPECT_DOUBLE_EQ(at_query(s.residual, 2), 2);
  EXPECT_DOUBLE_EQ(at_query(s.entropy, 2), 1.5 * std::log(2.0));
  // nu = 1, sigma0^2 = 1/d = 1: lambda_obs = (8/3 + 1) / (2 + 1) = 11/9, K = (11/9) / (1 + 11/9) = 11/20.
  EXPECT_DOUBLE_EQ(at_query(s.observation_precision, 2), 11.0 / 9);
  EXPECT_NEAR(at_query(s.log_observation_precision, 2), std::log(11.0 / 9), 1e-15);
  EXPECT_DOUBLE_EQ(at_query(s.kalman_gain, 2), 11.0 / 20);
  // sv^2 = (4 + 0 + 4) / 3 = 8/3, S / sv^2 = 3/4, lambda = (11/3) / (7/4) = 44/21, K = 44/65.
  EXPECT_DOUBLE_EQ(s.value_variance[0][0].item<double>(), 8.0 / 3);
  EXPECT_DOUBLE_EQ(at_query(s.kalman_gain_scaled, 2), 44.0 / 65);
}

TEST(AttentionReference, WithoutFirstByHand) {
  const QueryStatistics s = ThreeKeys().run();
  // Query 2 without key 0: p = (2/3, 1/3) on values 3, 5: e = 11/3, S = (2/3)(4/9) + (1/3)(16/9) = 8/9, n_eff = 1 /
  // (5/9) = 9/5.
  EXPECT_DOUBLE_EQ(at_query(s.without_first_n_eff, 2), 9.0 / 5);
  EXPECT_DOUBLE_EQ(at_query(s.without_first_residual, 2), 8.0 / 9);
  EXPECT_DOUBLE_EQ(at_query(s.without_first_observation_precision, 2), (14.0 / 5) / (17.0 / 9));
  EXPECT_DOUBLE_EQ(at_query(s.without_first_kalman_gain, 2), (14.0 * 9) / (14.0 * 9 + 17.0 * 5));
  EXPECT_TRUE(std::isnan(at_query(s.without_first_n_eff, 0)));  // query 0 sees only key 0
}

TEST(AttentionReference, NormsByHand) {
  const QueryStatistics s = ThreeKeys().run();
  // Query 2: e = 3, K = 11/20, e' = 11/3.
  EXPECT_DOUBLE_EQ(at_query(s.estimate_norm, 2), 3);
  EXPECT_DOUBLE_EQ(at_query(s.gained_estimate_norm, 2), 3 * 11.0 / 20);
  EXPECT_DOUBLE_EQ(at_query(s.without_first_norm, 2), 11.0 / 3);
  EXPECT_DOUBLE_EQ(at_query(s.estimate_norm, 0), 1);
  EXPECT_TRUE(std::isnan(at_query(s.without_first_norm, 0)));
}

TEST(AttentionReference, NormsAreOverDimensionsAndKIsOfEach) {
  // One key with value (3, -4): e = v, S = 0, n_eff = 1, nu sigma0^2 = 1/2, lambda_obs = 4 in both dimensions; at
  // lambda = 12 K = 1/4.
  const at::Tensor value = at::tensor({3.0, -4.0}).to(at::kDouble).view({1, 1, 2});
  const QueryStatistics s = attention_statistics_reference({.prior_precision = 12}, value, value, value);
  EXPECT_DOUBLE_EQ(at_query(s.estimate_norm, 0), 5);
  EXPECT_DOUBLE_EQ(at_query(s.gained_estimate_norm, 0), 1.25);
}

TEST(AttentionReference, TheScaleIsOfKeysAndThePriorOfValues) {
  // Keys of four dimensions: the scale is 1/2, so key 1 has the score ln 2. Values of one: sigma0^2 = 1.
  at::Tensor query = at::zeros({1, 3, 4}, at::kDouble), key = at::zeros({1, 3, 4}, at::kDouble);
  query.select(2, 0).fill_(2 * std::log(2.0));
  key[0][1][0] = 1;
  const QueryStatistics s = attention_statistics_reference({}, query, key, column({1, 3, 5}));
  // Query 2 as in ThreeKeysByHand: n_eff = 8/3, S = 2.
  EXPECT_EQ(s.output.sizes(), (at::IntArrayRef{1, 3, 1}));
  EXPECT_NEAR(at_query(s.n_eff, 2), 8.0 / 3, 1e-14);
  EXPECT_NEAR(at_query(s.residual, 2), 2, 1e-14);
  EXPECT_NEAR(at_query(s.observation_precision, 2), (8.0 / 3 + 1) / (2 + 1), 1e-14);
}

TEST(AttentionReference, ColumnMeansAndFirstMass) {
  const QueryStatistics s = ThreeKeys().run();
  // p of key 0: 1, 1/3, 1/4. p of key 1: (hidden), 2/3, 1/2. p of key 2: 1/4.
  EXPECT_DOUBLE_EQ(s.column_mean[0][0].item<double>(), (1 + 1.0 / 3 + 1.0 / 4) / 3);
  EXPECT_DOUBLE_EQ(s.column_mean[0][1].item<double>(), (2.0 / 3 + 1.0 / 2) / 2);
  EXPECT_DOUBLE_EQ(s.column_mean[0][2].item<double>(), 0.25);
  EXPECT_TRUE(std::isnan(s.column_mean[0][3].item<double>()));
  EXPECT_DOUBLE_EQ(s.first_mass[0][1][1].item<double>(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(s.first_mass[0][1][2].item<double>(), 0);  // hidden
}

TEST(AttentionReference, SinkLogitTakesMassButNotStatistics) {
  ThreeKeys one;
  one.options.sink_logit = at::tensor({std::log(4.0)}).to(at::kDouble);  // has the weight of the three keys together
  const QueryStatistics s = one.run(), plain = ThreeKeys().run();
  EXPECT_DOUBLE_EQ(at_query(s.sink_logit_mass, 2), 0.5);
  EXPECT_DOUBLE_EQ(s.output[0][2][0].item<double>(), 1.5);
  EXPECT_DOUBLE_EQ(s.first_mass[0][2][1].item<double>(), 0.25);
  EXPECT_DOUBLE_EQ(at_query(s.n_eff, 2), at_query(plain.n_eff, 2));
  EXPECT_DOUBLE_EQ(at_query(s.estimate_norm, 2), at_query(plain.estimate_norm, 2));
  EXPECT_DOUBLE_EQ(at_query(s.entropy, 2), at_query(plain.entropy, 2));
  EXPECT_DOUBLE_EQ(at_query(s.residual, 2), at_query(plain.residual, 2));
  EXPECT_FALSE(plain.sink_logit_mass.defined());
}

TEST(AttentionReference, HiddenKeysLeaveNaN) {
  ThreeKeys one;
  one.options.key_bias = at::tensor({-INFINITY, -INFINITY, 0.0F});
  const QueryStatistics s = one.run();
  EXPECT_EQ(s.queries_without_keys, 2);
  EXPECT_EQ(s.output[0][1][0].item<double>(), 0);
  EXPECT_TRUE(std::isnan(at_query(s.n_eff, 1)));
  EXPECT_DOUBLE_EQ(at_query(s.n_eff, 2), 1);
  EXPECT_DOUBLE_EQ(at_query(s.without_first_n_eff, 2), 1);  // key 0 is hidden, so this equals n_eff
  EXPECT_DOUBLE_EQ(at_query(s.without_first_norm, 2), at_query(s.estimate_norm, 2));
  EXPECT_DOUBLE_EQ(s.column_mean[0][2].item<double>(), 1);
  EXPECT_DOUBLE_EQ(s.column_mean[0][0].item<double>(), 0);  // the mean over query 2 only
}

TEST(AttentionReference, WindowSoftCapAndScaleByHand) {
  ThreeKeys one;
  one.options = {.scale = 2, .causal = false, .window = 2, .soft_cap = 1.5};
  one.query = column({1, 0, 0});
  one.key = column({1, 0, 3});
  const QueryStatistics s = one.run();
  // Query 0 sees keys 0, 1: scores 1.5 tanh(2 / 1.5) and 0.
  const double p = 1 / (1 + std::exp(-1.5 * std::tanh(2 / 1.5)));
  EXPECT_DOUBLE_EQ(s.first_mass[0][0][0].item<double>(), p);
  EXPECT_DOUBLE_EQ(s.output[0][0][0].item<double>(), p * 1 + (1 - p) * 3);
  EXPECT_DOUBLE_EQ(at_query(s.n_eff, 1), 3);  // sees 0, 1, 2 with equal scores
  EXPECT_DOUBLE_EQ(at_query(s.n_eff, 2), 2);
}

TEST(AttentionReference, SinkLimitOfTheGain) {
  // All mass on one key: n_eff -> 1, S -> 0, lambda_obs -> 2d, K -> 2d / (1 + 2d).
  AttentionOptions options{.key_bias = at::tensor({200.0, 0.0}).to(at::kDouble)};
  const at::Tensor value = at::tensor({1.0, 2.0, 3.0, 4.0}).to(at::kDouble).view({1, 2, 2});
  const QueryStatistics s = attention_statistics_reference(options, at::zeros_like(value), value, value);
  EXPECT_NEAR(at_query(s.kalman_gain, 1), 4.0 / 5, 1e-15);
}

TEST(AttentionReference, WrongRequestsAreNamed) {
  const ThreeKeys one;
  const auto run = [&](const AttentionOptions& options, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    attention_statistics_reference(options, q, k, v);
  };
  EXPECT_THAT([&] { run({.window = -1}, one.query, one.key, one.value); },
              ThrowsMessage<InvalidArgument>(HasSubstr("window -1")));
  EXPECT_THAT([&] { run({}, one.query, one.key.to(at::kFloat), one.value); },
              ThrowsMessage<InvalidArgument>(HasSubstr("key has dtype Float")));
  EXPECT_THAT([&] { run({}, one.query, one.key.to(at::kLong), one.value); },
              ThrowsMessage<InvalidArgument>(HasSubstr("key has dtype Long")));
  EXPECT_THAT([&] { run({}, one.query, one.key, one.value.slice(1, 0, 2)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("key has shape [1, 3, 1], value [1, 2, 1]")));
  EXPECT_THAT(
      [&] {
        run({}, one.query.expand({3, 3, 1}), one.key.expand({2, 3, 1}), one.value.expand({2, 3, 1}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("3 query heads over 2 kv heads")));
  EXPECT_THAT([&] { run({.key_bias = at::zeros({2})}, one.query, one.key, one.value); },
              ThrowsMessage<InvalidArgument>(HasSubstr("key_bias has shape [2]; must be [3] or [1, 3]")));
  EXPECT_THAT([&] { run({.key_bias = at::full({3}, NAN)}, one.query, one.key, one.value); },
              ThrowsMessage<InvalidArgument>(HasSubstr("key_bias holds NaN")));
  EXPECT_THAT([&] { run({.sink_logit = at::full({1}, INFINITY)}, one.query, one.key, one.value); },
              ThrowsMessage<InvalidArgument>(HasSubstr("sink_logit holds NaN or infinity")));
  EXPECT_THAT([&] { run({.soft_cap = -1}, one.query, one.key, one.value); },
              ThrowsMessage<InvalidArgument>(HasSubstr("soft_cap -1")));
}

TEST(AttentionReference, DamagedActivationsAreAFailedRun) {
  const ThreeKeys one;
  EXPECT_THAT([&] { attention_statistics_reference({}, one.query, one.key, one.value / 0); },
              ThrowsMessage<RunFailed>(HasSubstr("value holds NaN or infinity")));
  EXPECT_THAT([&] { attention_statistics_reference({}, one.query * NAN, one.key, one.value); },
              ThrowsMessage<RunFailed>(HasSubstr("query holds NaN or infinity")));
}

}  // namespace attention_reference_test
}  // namespace gainlens::kernels
