// What must hold exactly: the model as it is, means, causality.
#include "interventions/gate_arm_reading.h"
#include "interventions/gate_pass.h"
#include "models/random_decoder.h"
#include "support/refusal.h"
#include "sweep/one_sequence.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::interventions {
namespace gate_arms_test {

using gainlens::testing::random_decoder;
using gainlens::testing::refusal_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tokens = std::vector<std::int32_t>;

constexpr std::int64_t length = 24, trained = 12;

models::DecoderConfig config_with(models::Gate gate) {
  models::DecoderConfig config = gainlens::testing::small_config();
  config.gate = gate;
  return config;
}

Tokens document(std::int32_t shift, std::int64_t tokens = length) {
  Tokens ids;
  ids.reserve(static_cast<std::size_t>(tokens));
  for (std::int32_t i = 0; i < tokens; ++i) ids.push_back((i * (17 + shift) + i * i / 3 + 5 * shift) % 50);
  return ids;
}

/// The stream of a pass with an arm.
at::Tensor stream_of(models::Decoder& model, GateArm arm, const GainCalibration& calibration, const Tokens& tokens) {
  return run_gate_pass(model, tokens, true, [&](const GateSite& site) {
    return gate_of_arm(arm, site.statistics.observation_precision_by_dimension, site.gate,
                       calibration.layers.at(site.layer), 7, static_cast<std::uint64_t>(site.layer));
  });
}

class GateArms : public ::testing::TestWithParam<models::Gate> {
 protected:
  GateArms() : model_(random_decoder(config_with(GetParam()), at::kFloat)) {}
  GainCalibration calibration() { return calibrate_gates(model_, {document(1), document(2)}, trained, true); }

  c10::InferenceMode inference_;
  models::Decoder model_;
};

TEST_P(GateArms, NativeIsTheModelBitForBit) {
  models::StatisticsAttention statistics([](std::int64_t, kernels::QueryStatistics&&) {});
  hooks::ForwardOptions options;
  options.attention = &statistics;
  const at::Tensor plain = model_.forward(sweep::one_sequence(document(0)), options, {}).hidden;
  const auto nothing = [](const GateSite&) { return at::Tensor(); };
  EXPECT_TRUE(at::equal(run_gate_pass(model_, document(0), false, nothing), plain));
  // So is a pass that writes to each gate what stands there.
  EXPECT_TRUE(at::equal(run_gate_pass(model_, document(0), true, nothing), plain));
  EXPECT_TRUE(at::equal(run_gate_pass(model_, document(0), true,
                                      [](const GateSite& site) {
                                        return site.gate.defined() ? site.gate : at::ones({4, length, 4}, at::kDouble);
                                      }),
                        plain));
  const at::Tensor usual = model_.forward(sweep::one_sequence(document(0)), {}, {}).hidden;
  EXPECT_LT((usual - plain).abs().max().item<double>(), 1e-5);
}

TEST_P(GateArms, GatesAreCalibratedOnTheTrainedLength) {
  const GainCalibration found = calibration();
  ASSERT_EQ(found.layers.size(), 2u);
  at::Tensor gates, gains;  // of layer 1, by hand
  for (const std::int32_t shift : {1, 2}) {
    run_gate_pass(model_, document(shift, trained), false, [&](const GateSite& site) {
      if (site.layer != 1) return at::Tensor();
      const at::Tensor precision = site.statistics.observation_precision_by_dimension.to(at::kDouble);
      const auto add = [](at::Tensor& all, const at::Tensor& more) {
        all = all.defined() ? at::cat({all, more}, 1) : more;
      };
      add(gains, precision);
      if (site.gate.defined()) add(gates, site.gate);
      return at::Tensor();
    });
  }
  for (std::int64_t head = 0; head < 4; ++head) {
    const runfile::CalibratedHead& one = found.heads.at(static_cast<std::size_t>(4 + head));
    EXPECT_EQ(one.layer, 1);
    EXPECT_EQ(one.head, head);
    EXPECT_NEAR(one.raw_mean, (gains[head] / (1 + gains[head])).mean().item<double>(), 1e-12);
    EXPECT_EQ(one.gate.has_value(), gates.defined());
    if (!gates.defined()) continue;
    EXPECT_NEAR(*one.gate, gates[head].mean().item<double>(), 1e-12);
    const double mean = (gains[head] / (one.lambda.value() + gains[head])).mean().item<double>();
    EXPECT_NEAR(mean, *one.gate, 1e-6);
    EXPECT_NEAR(one.gain.value(), mean, 1e-6);
  }
}

TEST_P(GateArms, LaterTokensChangeNothingEarlier) {
  const GainCalibration found = calibration();
  Tokens other = document(0);
  other.back() = (other.back() + 1) % 50;
  for (const GateArm arm : possible_arms(GetParam())) {
    if (arm == GateArm::native) continue;
    const at::Tensor one = stream_of(model_, arm, found, document(0)), two = stream_of(model_, arm, found, other);
    const bool same = at::equal(one.slice(1, 0, length - 1), two.slice(1, 0, length - 1));
    EXPECT_EQ(same, arm != GateArm::permuted) << name_of(arm);  // it moves gates of later queries to earlier ones
    EXPECT_FALSE(at::equal(one[0][-1], two[0][-1])) << name_of(arm);
  }
}

TEST_P(GateArms, PermutedHasTheSameNumbersInEachHead) {
  const GainCalibration found = calibration();
  int layers = 0;
  run_gate_pass(model_, document(0), false, [&](const GateSite& site) {
    const auto made = [&](GateArm arm, std::uint64_t draw) {
      return gate_of_arm(arm, site.statistics.observation_precision_by_dimension, site.gate,
                         found.layers.at(site.layer), 7, draw);
    };
    const at::Tensor gain = made(site.gate.defined() ? GateArm::gain : GateArm::modulated, 0);
    const at::Tensor permuted = made(GateArm::permuted, 0);
    EXPECT_FALSE(at::equal(permuted, gain));
    EXPECT_TRUE(at::equal(std::get<0>(permuted.sort(1)), std::get<0>(gain.sort(1))));
    EXPECT_TRUE(at::equal(permuted, made(GateArm::permuted, 0)));
    EXPECT_FALSE(at::equal(permuted, made(GateArm::permuted, 1)));
    ++layers;
    return at::Tensor();
  });
  EXPECT_EQ(layers, 2);
}

INSTANTIATE_TEST_SUITE_P(EveryGate, GateArms,
                         ::testing::Values(models::Gate::none, models::Gate::headwise, models::Gate::elementwise),
                         [](const auto& tested) {
                           return std::string(tested.param == models::Gate::none       ? "none"
                                              : tested.param == models::Gate::headwise ? "headwise"
                                                                                       : "elementwise");
                         });

/// Worked by hand: one head, two queries of two dimensions.
TEST(GateOfArm, NumbersByHand) {
  const at::Tensor precision = at::tensor({1.0, 3.0, 9.0, 4.0}, at::kDouble).view({1, 2, 2});
  const at::Tensor gate = at::tensor({0.25, 0.5}, at::kDouble).view({1, 2, 1});
  LayerCalibration layer;
  layer.gate_mean = at::full({1, 1}, 0.4, at::kDouble);
  layer.gain_mean = at::full({1, 1}, 0.5, at::kDouble);
  layer.scale = {2};
  layer.lambda = {3};
  layer.by_position = at::tensor({0.1, 0.2, 0.3}, at::kDouble).view({1, 3, 1});
  const auto made = [&](GateArm arm) {
    const at::Tensor values = gate_of_arm(arm, precision, gate, layer, 0, 0).contiguous();
    EXPECT_EQ(values.numel(), 2);
    return std::vector<double>{values[0][0][0].item<double>(), values[0][1][0].item<double>()};
  };
  using ::testing::DoubleEq;
  EXPECT_THAT(made(GateArm::raw), ElementsAre(DoubleEq(0.625), DoubleEq(0.85)));
  EXPECT_THAT(made(GateArm::gain), ElementsAre(DoubleEq(0.375), DoubleEq((0.75 + 4.0 / 7) / 2)));
  EXPECT_THAT(made(GateArm::scaled_gain), ElementsAre(DoubleEq(1.25), DoubleEq(1.7)));
  EXPECT_THAT(made(GateArm::modulated), ElementsAre(DoubleEq(0.3125), DoubleEq(0.85)));
  EXPECT_THAT(made(GateArm::constant), ElementsAre(0.4, 0.4));
  EXPECT_THAT(made(GateArm::position), ElementsAre(0.1, 0.2));
  EXPECT_THAT(made(GateArm::one), ElementsAre(1, 1));
  layer.lambda = {std::nullopt};  // the head keeps its gate in the arms of K'
  EXPECT_THAT(made(GateArm::gain), ElementsAre(0.25, 0.5));
  EXPECT_THAT(made(GateArm::permuted), ElementsAre(0.25, 0.5));
  EXPECT_THAT(made(GateArm::position), ElementsAre(0.25, 0.5));
  EXPECT_THAT(made(GateArm::raw), ElementsAre(DoubleEq(0.625), DoubleEq(0.85)));
}

TEST(GateArmReading, ThatChangesNothingIsRefused) {
  const c10::InferenceMode inference;
  models::Decoder model = random_decoder(config_with(models::Gate::headwise), at::kFloat);
  GainCalibration calibration = calibrate_gates(model, {document(1)}, trained, false);
  for (auto& [number, layer] : calibration.layers) layer.lambda.assign(4, std::nullopt);
  EXPECT_THAT(refusal_of([&] {
                read_gate_arm(model, GateArm::gain, calibration, {document(0), 4, 0}, 0);
              }),
              HasSubstr("arm 'gain': it leaves every gate as it is, in a context of 24 tokens"));
}

TEST(GateArmNames, AreReadInOrder) {
  EXPECT_THAT(gate_arms({"one", "gain", "native"}, models::Gate::headwise),
              ElementsAre(GateArm::native, GateArm::gain, GateArm::one));
  EXPECT_EQ(gate_arms({}, models::Gate::elementwise).size(), 9u);
  EXPECT_EQ(gate_arms({}, models::Gate::none), possible_arms(models::Gate::none));
  EXPECT_THAT(refusal_of([] { gate_arms({"gian"}, models::Gate::headwise); }), HasSubstr("did you mean 'gain'?"));
  EXPECT_THAT(refusal_of([] { gate_arms({"gain"}, models::Gate::none); }), HasSubstr("takes the place of a gate"));
  EXPECT_THAT(refusal_of([] { gate_arms({"native"}, models::Gate::headwise); }), HasSubstr("native alone"));
}

TEST(Contexts, GrowToTheLeft) {
  EXPECT_EQ(last_tokens({1, 2, 3, 4, 5}, 3, false), (Tokens{3, 4, 5}));
  EXPECT_EQ(last_tokens({1, 2, 3, 4, 5}, 3, true), (Tokens{1, 4, 5}));
  EXPECT_EQ(last_tokens({1, 2, 3}, 3, true), (Tokens{1, 2, 3}));
}

/// The formula of docs/analyses/prediction-3.md, with nothing of the program: MT19937-64 by its recurrence (Nishimura
/// 2000), SplitMix64, and the shuffle.
class OrdersByFormula {
 public:
  OrdersByFormula(std::uint64_t seed, std::uint64_t document, std::uint64_t tokens, std::uint64_t layer) {
    state_[0] = split_mix(split_mix(seed) ^ (document << 40) ^ (tokens << 14) ^ layer);
    for (std::uint64_t i = 1; i < words; ++i)
      state_[i] = 6364136223846793005u * (state_[i - 1] ^ (state_[i - 1] >> 62)) + i;
  }

  std::vector<std::int64_t> next(std::int64_t queries) {
    std::vector<std::int64_t> list;
    for (std::int64_t i = 0; i < queries; ++i) list.push_back(i);
    for (std::uint64_t i = list.size(); i >= 2; --i) {
      const std::uint64_t left_out = (0 - i) % i;  // 2^64 mod i
      std::uint64_t r = number();
      while (left_out != 0 && r >= 0 - left_out) r = number();
      std::swap(list[i - 1], list[r % i]);
    }
    return list;
  }

 private:
  static constexpr std::uint64_t words = 312;

  static std::uint64_t split_mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  std::uint64_t number() {
    const std::uint64_t i = place_++ % words, upper = ~std::uint64_t{0} << 31;
    const std::uint64_t x = (state_[i] & upper) | (state_[(i + 1) % words] & ~upper);
    state_[i] = state_[(i + 156) % words] ^ (x >> 1) ^ (x % 2 == 1 ? 0xb5026f5aa96619e9u : 0);
    std::uint64_t y = state_[i];
    y ^= (y >> 29) & 0x5555555555555555u;
    y ^= (y << 17) & 0x71d67fffeda60000u;
    y ^= (y << 37) & 0xfff7eee000000000u;
    return y ^ (y >> 43);
  }

  std::array<std::uint64_t, words> state_{};
  std::uint64_t place_ = 0;
};

TEST(PermutedOrders, AreThoseOfTheFormula) {
  constexpr std::int64_t heads = 3;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0}}) {
    for (const std::int64_t tokens : {2, 24, 700}) {
      OrdersByFormula expected(seed, 5, static_cast<std::uint64_t>(tokens), 9);
      const auto orders = query_orders(heads, tokens, seed, permutation_draw(5, tokens, 9));
      ASSERT_EQ(std::ssize(orders), heads);
      for (const auto& order : orders) EXPECT_EQ(order, expected.next(tokens));
    }
  }
  // Numbers that another program may be compared with.
  EXPECT_THAT(query_orders(1, 8, 0, permutation_draw(3, 8, 2)).front(), ElementsAre(0, 6, 3, 2, 4, 7, 1, 5));
}

/// A query gets what the formula's query had: K' differs from query to query.
TEST(PermutedOrders, AreThoseOfTheArm) {
  const at::Tensor precision = at::rand({3, 24, 4}, at::kDouble) + 0.1, gate = at::full({3, 24, 1}, 0.5, at::kDouble);
  LayerCalibration calibration;
  calibration.gain_mean = at::full({3, 1}, 0.5, at::kDouble);
  calibration.lambda = {1.5, std::nullopt, 0.5};
  const at::Tensor gain = gate_of_arm(GateArm::gain, precision, gate, calibration, 0, 0);
  const at::Tensor found = gate_of_arm(GateArm::permuted, precision, gate, calibration, 7, permutation_draw(1, 24, 4));
  OrdersByFormula expected(7, 1, 24, 4);
  for (std::int64_t head = 0; head < 3; ++head) {
    const at::Tensor order = at::tensor(expected.next(24));
    EXPECT_TRUE(at::equal(found[head], gain[head].index_select(0, order))) << head;
  }
}

}  // namespace gate_arms_test
}  // namespace gainlens::interventions
