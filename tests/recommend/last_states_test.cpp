// What a recommender knows at the last position of each history, against a pass over all positions.
#include "bft/filter_pass.h"
#include "bft/filter_step.h"
#include "recommend/full_ranking.h"
#include "recommend/sasrec.h"
#include "recommend/sasrec_goldens.h"
#include "recommend/small_data.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace gainlens::recommend {
namespace last_states_test {

/// lambda' after the last layer at each last position, from what hooks see; undefined: the filter does not act.
at::Tensor observed_precision(const SasRec& model, const PackedSequences& packed) {
  const bft::Filter& filter = model.armed_filter();
  if (!filter.has_gain()) return {};
  at::Tensor before, observation, hidden;
  hooks::Hooks hooks;
  const auto take = [&](std::string_view site, at::Tensor& to) {
    hooks.observe(hooks::block_site(model.config().layers - 1, site),
                  [&to](const hooks::Site&, const at::Tensor& seen) { to = seen.flatten(0, 1).flatten(1).clone(); });
  };
  take(bft::precision_site, before);
  take(bft::observation_site, observation);
  take("hook_resid_pre", hidden);
  model.run(packed, {}, hooks);
  if (!before.defined()) return {};
  if (filter.parts().update == bft::StreamUpdate::least_error)
    observation = bft::least_error_precision(observation, hidden);
  return bft::posterior_precision(before, observation, filter.options).index_select(0, packed.last_rows());
}

void expect_close(const at::Tensor& found, const at::Tensor& expected, double tolerance) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  const double scale = expected.abs().max().item<double>();
  EXPECT_LE((found - expected).abs().max().item<double>(), tolerance * (1 + scale));
}

TEST(LastStates, AreTheLastRowsOfAPassOverAllPositions) {
  const at::NoGradGuard no_gradients;
  std::size_t with_precision = 0;
  for (const std::string& name : golden_names()) {
    SCOPED_TRACE(name);
    const Golden golden = read_golden(name);
    const SasRecConfig& config = golden.checkpoint.config;
    const PackedSequences packed = pack(golden.spans(), config);
    for (const auto type : {at::kDouble, at::kFloat}) {
      const SasRec model(config, converted(config, golden.checkpoint.weights, type));
      const LastStates found = model.last_states(packed);
      expect_close(found.hidden, model.run(packed).index_select(0, packed.last_rows()),
                   type == at::kDouble ? 1e-13 : 2e-6);
      const at::Tensor expected = observed_precision(model, packed);
      ASSERT_EQ(found.precision.defined(), expected.defined());
      if (!expected.defined()) continue;
      expect_close(found.precision, expected, type == at::kDouble ? 1e-13 : 1e-5);
      ++with_precision;
    }
  }
  EXPECT_GT(with_precision, 20u);
}

TEST(LastStates, AScorerKeepsThePrecisionOfEachUser) {
  const data::LeaveOneOut split = timed_ring_of(9, 12);
  for (const BackboneKind& kind : backbones()) {
    SCOPED_TRACE(kind.name);
    const auto model_of = [&](Arm arm) {
      const at::NoGradGuard no_gradients;
      bft::FilterOptions filter;
      filter.most_precision = 1e9;  // at the bound all users would be alike
      return kind.make({{{"width", 8}, {"inner_width", 16}, {"positions", 5}}, arm, filter, 12}, 7);
    };
    const auto model = model_of(Arm::bft);
    bft::InitialPrecisionWeights& weights = model->filter()->initial_precision_weights();
    const auto precisions = [](const Backbone& of, const data::LeaveOneOut& users, std::int64_t at_once) {
      std::vector<double> found;
      BackboneScorer scorer(of, &found);
      recommend_all(scorer, users, 2, {.users_at_once = at_once});
      return found;
    };
    const at::NoGradGuard no_gradients;
    weights.strength.fill_(0);
    EXPECT_TRUE(precisions(*model, split, 4).empty()) << "the filter is not in force";
    weights.strength.fill_(1);
    weights.base.copy_(at::linspace(0, 1, weights.base.numel()));
    weights.range.fill_(3);
    const std::vector<double> all = precisions(*model, split, 4);
    ASSERT_EQ(all.size(), 9u);
    for (std::int64_t user = 0; user < split.users(); ++user) {
      const std::vector<data::History> alone{split.interactions().history(user)};
      const at::Tensor precision = model->last_states(pack(alone, model->view())).precision;
      const double expected = precision.to(at::kDouble).mean().item<double>();
      EXPECT_NEAR(all[static_cast<std::size_t>(user)], expected, 1e-5 * expected);
    }
    EXPECT_NE(all[0], all[1]);
    EXPECT_TRUE(precisions(*model_of(Arm::plain), split, 4).empty());
    weights.range.fill_(NAN);
    EXPECT_THROW(precisions(*model, split, 4), RunFailed);
  }
}

}  // namespace last_states_test
}  // namespace gainlens::recommend
