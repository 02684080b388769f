#include "recommend/user_states.h"

#include "recommend/small_data.h"
#include "support/refusal.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace gainlens::recommend {
namespace user_states_test {

using gainlens::testing::refusal_of;
using ::testing::HasSubstr;

TEST(UserStates, AreThoseOfTheRanking) {
  const data::LeaveOneOut split = timed_ring_of(9, 12);
  const at::NoGradGuard no_gradients;
  for (const BackboneKind& kind : backbones()) {
    SCOPED_TRACE(kind.name);
    const auto model_of = [&](Arm arm) {
      return kind.make({.options = {{"width", 8}, {"inner_width", 16}, {"positions", 5}}, .arm = arm, .items = 12}, 7);
    };
    const auto model = model_of(Arm::bft), plain = model_of(Arm::plain);
    bft::InitialPrecisionWeights& weights = model->filter()->initial_precision_weights();
    weights.strength.fill_(0);
    EXPECT_THAT(refusal_of([&] { user_states(*model, split, data::HeldOut::test, "m"); }),
                HasSubstr("m: its filter is not in force"));
    EXPECT_EQ(refusal_of([&] { user_states(*plain, split, data::HeldOut::test, "m"); }),
              "m: has no filter: arm plain; train one with --arm bft");
    weights.strength.fill_(0.5);
    weights.base.copy_(at::linspace(0, 1, weights.base.numel()));
    weights.range.fill_(3);
    const UserStates found = user_states(*model, split, data::HeldOut::test, "m", {.users_at_once = 4});
    EXPECT_EQ(found.share, 0.5);
    EXPECT_EQ(found.most_precision, 100);
    BackboneScorer scorer(*model);
    const std::vector<float> ranks = rank_all(scorer, split, data::HeldOut::test);
    EXPECT_EQ(found.rank, std::vector<double>(ranks.begin(), ranks.end()));
    EXPECT_EQ(found.confidence,
              rank_with_confidence(scorer, split, data::HeldOut::test, {.users_at_once = 4}).largest_probability);
    ASSERT_EQ(found.precision.size(), 9u);
    for (std::int64_t user = 0; user < 9; ++user) {
      const std::vector<data::History> alone{split.history(user, data::HeldOut::test)};
      const double expected =
          model->last_states(pack(alone, model->view())).precision.to(at::kDouble).mean().item<double>();
      EXPECT_NEAR(found.precision[static_cast<std::size_t>(user)], expected, 1e-5 * expected);
    }
  }
}

}  // namespace user_states_test
}  // namespace gainlens::recommend
