// The attention of recommenders when they rank, against the whole matrix of weights of each history.
#include "recommend/user_attention.h"

#include "bft/filter_pass.h"
#include "recommend/filtered_positions.h"
#include "recommend/small_data.h"
#include "support/refusal.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gainlens::recommend {
namespace user_attention_test {

using gainlens::testing::refusal_of;
using ::testing::HasSubstr;

/// An untrained model of 12 items that sees the last 6 positions, whose filter acts.
std::unique_ptr<Backbone> model_of(const BackboneKind& kind, Arm arm, const bft::FilterOptions& filter = {}) {
  const ModelPlan plan{
      .options = {{"width", 8}, {"inner_width", 16}, {"positions", 6}}, .arm = arm, .filter = filter, .items = 12};
  const at::NoGradGuard no_gradients;
  std::unique_ptr<Backbone> model = kind.make(plan, 7);
  // Larger weights than those of a start: attention is not uniform.
  for (const WeightSlot& slot : model->slots())
    if (slot.tensor->dim() == 2) slot.tensor->mul_(12);
  bft::InitialPrecisionWeights& precision = model->filter()->initial_precision_weights();
  if (precision.strength.defined()) precision.strength.fill_(1);
  if (precision.base.defined()) precision.base.copy_(at::linspace(0, 1, precision.base.numel()));
  if (precision.range.defined()) precision.range.fill_(3);
  model->weights_changed();
  return model;
}

/// The ids that a model sees of a history.
at::Tensor ids_of(const Backbone& model, const data::History& history) {
  const HistoryView view = model.view();
  const std::int64_t seen = view.seen(static_cast<std::int64_t>(history.items.size()));
  std::vector<std::int64_t> ids(history.items.end() - seen, history.items.end());
  if (view.mask != 0) ids.push_back(view.mask);
  return at::tensor(ids, at::kLong).unsqueeze(0);
}

/// What a pass over one history shows at a site of each layer, in float64.
struct Shown {
  Shown(Backbone& model, const at::Tensor& ids, const std::vector<std::string>& sites) {
    hooks::Hooks hooks;
    const auto layers = static_cast<std::int64_t>(model.layout().window.size());
    for (const std::string& site : sites) {
      tensors[site].resize(static_cast<std::size_t>(layers));
      for (std::int64_t layer = 0; layer < layers; ++layer) {
        hooks.observe(hooks::block_site(layer, site), [this, site, layer](const hooks::Site&, const at::Tensor& seen) {
          tensors[site][static_cast<std::size_t>(layer)] = seen.to(at::kDouble).clone();
        });
      }
    }
    model.forward({ids}, {}, hooks);
  }
  const at::Tensor& at(const std::string& site, std::int64_t layer) const {
    return tensors.at(site)[static_cast<std::size_t>(layer)];
  }
  std::map<std::string, std::vector<at::Tensor>> tensors;
};

const std::string gain_of_filter(bft::gain_site);

/// The numbers of one head by loops over the last row of its weights.
/// @param weights  [key]
/// @param values   [key, head_dim]
std::map<std::string, double> naive(const at::Tensor& weights, const at::Tensor& values, bool masked) {
  const std::int64_t keys = weights.size(0), dimensions = values.size(1);
  const auto weight = weights.accessor<double, 1>();
  const auto of_key = values.accessor<double, 2>();
  double squares = 0, entropy = 0, gain = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    const double p = weight[j];
    squares += p * p;
    if (p > 0) entropy -= p * std::log(p);
  }
  const double n_eff = 1 / squares;
  for (std::int64_t i = 0; i < dimensions; ++i) {
    double e = 0, spread = 0;
    for (std::int64_t j = 0; j < keys; ++j) e += weight[j] * of_key[j][i];
    for (std::int64_t j = 0; j < keys; ++j) spread += weight[j] * std::pow(of_key[j][i] - e, 2);
    const double precision = (n_eff + 1) / (spread + 1 / static_cast<double>(dimensions));  // eq. (6), nu = 1
    gain += precision / (1 + precision) / static_cast<double>(dimensions);
  }
  std::map<std::string, double> found = {{"n_eff", n_eff},          {"n_eff_share", n_eff / static_cast<double>(keys)},
                                         {"kalman_gain", gain},     {"entropy", entropy},
                                         {"first_mass", weight[0]}, {"last_mass", weight[keys - (masked ? 2 : 1)]}};
  if (masked) found["mask_mass"] = weight[keys - 1];
  return found;
}

/// The others are refused, see tests/cli/hstu_commands_test.cpp.
std::vector<BackboneKind> backbones_with_softmax() {
  std::vector<BackboneKind> found;
  for (const BackboneKind& kind : backbones()) {
    if (kind.name != "hstu") found.push_back(kind);
  }
  return found;
}

TEST(UserAttention, IsThatOfTheWholeMatrixOfWeights) {
  const data::LeaveOneOut split = ring_of(5, 12);  // histories of 3 to 7 items, of which 5 or 6 are seen
  const at::NoGradGuard no_gradients;
  double uneven = 0;
  for (const BackboneKind& kind : backbones_with_softmax()) {
    for (const ArmParts& arm : all_arms()) {
      if (arm.arm == Arm::ffn) continue;  // for a backbone without an MLP
      SCOPED_TRACE(kind.name + " " + std::string(arm.name));
      const auto model = model_of(kind, arm.arm);
      const bool masked = model->view().mask != 0;
      const UserAttention found = user_attention(*model, split, data::HeldOut::test, "m", 2);
      ASSERT_EQ(found.users, 5);
      ASSERT_EQ(found.heads, 2);
      ASSERT_GE(found.layers, 2);
      for (std::int64_t user = 0; user < found.users; ++user) {
        const at::Tensor ids = ids_of(*model, split.history(user, data::HeldOut::test));
        const Shown shown(*model, ids, {"attn.hook_pattern", "attn.hook_v"});
        for (std::int64_t layer = 0; layer < found.layers; ++layer) {
          const at::Tensor &pattern = shown.at("attn.hook_pattern", layer), &values = shown.at("attn.hook_v", layer);
          for (std::int64_t head = 0; head < found.heads; ++head) {
            const auto expected = naive(pattern[0][head][ids.size(1) - 1], values[0].select(1, head), masked);
            for (const auto& [name, value] : expected)
              EXPECT_NEAR(found.at(name, user, layer, head), value, 3e-5 * (1 + value))
                  << name << " of user " << user << ", head " << layer << "." << head;
            EXPECT_EQ(std::isnan(found.at("mask_mass", user, layer, head)), !masked);
            uneven = std::max(uneven, 1 - expected.at("n_eff_share"));
          }
        }
      }
    }
  }
  EXPECT_GT(uneven, 0.3) << "attention is nearly uniform: errors in the weights would not be seen";
}

TEST(UserAttention, TheGainIsWhatTheFilterShows) {
  const data::LeaveOneOut split = ring_of(4, 12);
  const at::NoGradGuard no_gradients;
  for (const BackboneKind& kind : backbones_with_softmax()) {
    for (const Arm arm : {Arm::bft, Arm::gate, Arm::constant_k, Arm::textbook, Arm::plain}) {
      SCOPED_TRACE(kind.name + " " + std::string(name_of(arm)));
      const auto model = model_of(kind, arm);
      const UserAttention found = user_attention(*model, split, data::HeldOut::test, "m");
      for (std::int64_t user = 0; user < found.users; ++user) {
        const at::Tensor ids = ids_of(*model, split.history(user, data::HeldOut::test));
        for (std::int64_t layer = 0; layer < found.layers; ++layer) {
          if (arm == Arm::plain) {
            EXPECT_TRUE(std::isnan(found.at("model_gain", user, layer, 0)));
            continue;
          }
          const at::Tensor gain = Shown(*model, ids, {gain_of_filter}).at(gain_of_filter, layer)[0][ids.size(1) - 1];
          for (std::int64_t head = 0; head < found.heads; ++head)
            EXPECT_NEAR(found.at("model_gain", user, layer, head), gain[head].mean().item<double>(), 1e-5);
        }
      }
    }
  }
}

TEST(UserAttention, TheGainOfSasRecIsThatOfKByFrequencyAtTheLastItem) {
  const data::LeaveOneOut split = ring_of(40, 12);
  const auto model = model_of(backbones().front(), Arm::bft);
  const UserAttention found = user_attention(*model, split, data::HeldOut::test, "m");
  const FilteredPositions read = filtered_positions(*model, split, data::HeldOut::test, "m");
  ASSERT_EQ(read.layers.size(), static_cast<std::size_t>(found.layers));
  for (std::int64_t user = 0; user < found.users; ++user) {
    for (std::int64_t layer = 0; layer < found.layers; ++layer) {
      const double own = (found.at("model_gain", user, layer, 0) + found.at("model_gain", user, layer, 1)) / 2;
      const std::size_t last = read.read.begin[static_cast<std::size_t>(user) + 1] - 1;
      EXPECT_NEAR(own, read.layers[static_cast<std::size_t>(layer)].gain[last], 1e-12);
    }
  }
}

TEST(UserAttention, AGainBehindTheOutputProjectionBelongsToNoHead) {
  bft::FilterOptions filter;
  filter.output_projection = true;
  filter.gain_place = bft::GainPlace::after;
  const data::LeaveOneOut split = ring_of(5, 12);
  const at::NoGradGuard no_gradients;
  const auto model = model_of(backbones().front(), Arm::bft, filter);
  const UserAttention found = user_attention(*model, split, data::HeldOut::test, "m");
  const at::Tensor ids = ids_of(*model, split.history(3, data::HeldOut::test));
  const double expected =
      Shown(*model, ids, {gain_of_filter}).at(gain_of_filter, 1)[0][ids.size(1) - 1].mean().item<double>();
  for (std::int64_t head = 0; head < found.heads; ++head)
    EXPECT_NEAR(found.at("model_gain", 3, 1, head), expected, 1e-5);
}

TEST(UserAttention, UsersDoNotChangeEachOther) {
  const data::LeaveOneOut split = ring_of(30, 12);
  const auto model = model_of(backbones_with_softmax().back(), Arm::bft);
  const UserAttention one = user_attention(*model, split, data::HeldOut::test, "m", 1),
                      all = user_attention(*model, split, data::HeldOut::test, "m", 100);
  for (const auto& [name, values] : one.numbers) {
    const std::vector<double>& other = all.numbers.at(name);
    ASSERT_EQ(values.size(), other.size());
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], other[i], 1e-5 * (1 + values[i])) << name;
  }
}

TEST(UserAttention, AFilterThatIsNotInForceHasNoGain) {
  const data::LeaveOneOut split = ring_of(4, 12);
  const auto model = model_of(backbones().front(), Arm::bft);
  {
    const at::NoGradGuard no_gradients;
    model->filter()->initial_precision_weights().strength.fill_(0);
  }
  const UserAttention found = user_attention(*model, split, data::HeldOut::test, "m");
  EXPECT_TRUE(std::isnan(found.at("model_gain", 0, 0, 0)));
  EXPECT_GE(found.at("n_eff", 0, 0, 0), 1);
}

TEST(UserAttention, WeightsOfEachDimensionAreRefused) {
  bft::FilterOptions filter;
  filter.kriging = bft::Kriging::per_dimension;
  const auto model = model_of(backbones().front(), Arm::bft, filter);
  EXPECT_THAT(refusal_of([&] { user_attention(*model, ring_of(3, 12), data::HeldOut::test, "m"); }),
              HasSubstr("m: its heads have other weights in each dimension"));
}

}  // namespace user_attention_test
}  // namespace gainlens::recommend
