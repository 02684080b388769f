#include "recommend/filtered_positions.h"

#include "bft/filter_pass.h"
#include "recommend/small_data.h"
#include "support/refusal.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gainlens::recommend {
namespace filtered_positions_test {

using gainlens::testing::refusal_of;
using ::testing::HasSubstr;

/// An untrained model of 12 items that sees the last 5 positions.
std::unique_ptr<Backbone> model_of(const BackboneKind& kind, Arm arm) {
  const ModelPlan plan{.options = {{"width", 8}, {"inner_width", 16}, {"positions", 5}}, .arm = arm, .items = 12};
  const at::NoGradGuard no_gradients;
  std::unique_ptr<Backbone> model = kind.make(plan, 7);
  if (arm != Arm::bft) return model;
  bft::InitialPrecisionWeights& precision = model->filter()->initial_precision_weights();
  precision.strength.fill_(1);
  precision.base.copy_(at::linspace(0, 1, precision.base.numel()));
  precision.range.fill_(3);
  return model;
}

TEST(FilteredPositions, AreThoseOfEachUserAlone) {
  const data::LeaveOneOut split = timed_ring_of(9, 12);  // histories of 3 to 9 items
  for (const BackboneKind& kind : backbones()) {
    SCOPED_TRACE(kind.name);
    const auto model = model_of(kind, Arm::bft);
    const FilteredPositions found = filtered_positions(*model, split, data::HeldOut::test, "m", 4);
    ASSERT_EQ(found.read.users(), 9u);
    ASSERT_EQ(found.layers.size(), model->filter()->layer_filter_weights().size());
    EXPECT_EQ(found.share, 1);
    const at::NoGradGuard no_gradients;
    for (std::int64_t user = 0; user < split.users(); ++user) {
      const data::History history = split.history(user, data::HeldOut::test);
      const auto all = static_cast<std::int64_t>(history.items.size());
      const std::int64_t seen = model->view().seen(all);
      const std::size_t first = found.read.begin[static_cast<std::size_t>(user)];
      ASSERT_EQ(found.read.begin[static_cast<std::size_t>(user) + 1] - first, static_cast<std::size_t>(seen));
      for (std::size_t layer = 0; layer < found.layers.size(); ++layer) {
        at::Tensor gain, precision;
        hooks::Hooks hooks;
        const auto take = [&](std::string_view site, at::Tensor& to) {
          hooks.observe(hooks::block_site(static_cast<std::int64_t>(layer), site),
                        [&to](const hooks::Site&, const at::Tensor& values) { to = values.clone(); });
        };
        take(bft::gain_site, gain);
        take(bft::precision_site, precision);
        model->run(pack(std::vector<data::History>{history}, model->view()), {}, hooks);
        for (std::int64_t i = 0; i < seen; ++i) {
          const std::size_t at = first + static_cast<std::size_t>(i);
          EXPECT_EQ(found.read.item[at] + 1,
                    static_cast<std::size_t>(history.items[static_cast<std::size_t>(all - seen + i)]));
          EXPECT_EQ(found.read.place[at], static_cast<double>(i + 1));
          EXPECT_EQ(found.read.length[at], static_cast<double>(seen));
          EXPECT_NEAR(found.layers[layer].gain[at], gain[0][i].mean().item<double>(), 1e-5);
          const double expected = precision[0][i].mean().item<double>();
          EXPECT_NEAR(found.layers[layer].precision[at], expected, 1e-5 * (1 + expected));
        }
      }
    }
  }
}

TEST(FilteredPositions, ThePrecisionBeforeTheFirstLayerIsExactlyThatOfTheItem) {
  const auto model = model_of(backbones().front(), Arm::bft);
  const FilteredPositions found = filtered_positions(*model, ring_of(40, 12), data::HeldOut::test, "m", 7);
  std::vector<double> of_item(12, -1);
  for (std::size_t i = 0; i < found.read.item.size(); ++i) {
    double& first = of_item[found.read.item[i]];
    if (first < 0) first = found.layers[0].precision[i];
    EXPECT_EQ(found.layers[0].precision[i], first);
  }
  EXPECT_NE(of_item[0], of_item[11]);
}

TEST(FilteredPositions, AModelWithoutAnActingFilterIsRefused) {
  const data::LeaveOneOut split = ring_of(3, 12);
  const BackboneKind& kind = backbones().front();
  const auto refusal = [&](Backbone& model) {
    return refusal_of([&] { filtered_positions(model, split, data::HeldOut::test, "m"); });
  };
  EXPECT_EQ(refusal(*model_of(kind, Arm::plain)), "m: has no filter: arm plain; train one with --arm bft");
  EXPECT_EQ(refusal(*model_of(kind, Arm::gate)), "m: has no filter: arm gate; train one with --arm bft");
  const auto idle = model_of(kind, Arm::bft);
  const at::NoGradGuard no_gradients;
  idle->filter()->initial_precision_weights().strength.fill_(0);
  EXPECT_THAT(refusal(*idle), HasSubstr("m: its filter is not in force"));
}

}  // namespace filtered_positions_test
}  // namespace gainlens::recommend
