// Readings of the paper that are options: each changes what it names, and the trained model shows it.

#include "bft/filter_pass.h"
#include "hooks/hooks.h"
#include "recommend/full_ranking.h"
#include "recommend/packed_sequences.h"
#include "recommend/recommender_checkpoint.h"
#include "recommend/sasrec_weights.h"
#include "recommend/small_data.h"
#include "recommend/small_training.h"
#include "runfile/recommend_run.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace gainlens::recommend {
namespace readings_test {

using gainlens::testing::refusal_of;
using gainlens::testing::TemporaryFolder;
using ::testing::HasSubstr;

Settings small_with(const Json& changes) {
  Settings settings = small();
  set_knobs(knobs(), settings, changes, "test");
  return settings;
}

/// The outcome of one training of an arm.
experiment::Result trained(const RecommendRequest& request, const data::LeaveOneOut& split) {
  return train_recommend(request, split).seeds.at(0).result;
}

TEST(EmbeddingDeviation, IsThatOfItemsAndPositionsBeforeTraining) {
  SasRecConfig config{.items = 40, .width = 16, .layers = 1, .inner_width = 32, .positions = 8};
  const SasRecWeights usual = initial_sasrec_weights(config, 5);
  config.embedding_deviation = 0.2;
  const SasRecWeights wide = initial_sasrec_weights(config, 5);
  EXPECT_TRUE(at::allclose(wide.item_embedding, usual.item_embedding * 10));
  EXPECT_TRUE(at::allclose(wide.position_embedding, usual.position_embedding * 10));
  EXPECT_TRUE(at::equal(wide.layers[0].query.weight, usual.layers[0].query.weight));
  EXPECT_NEAR(wide.item_embedding.slice(0, 1).std().item<double>(), 0.2, 0.02);
}

TEST(Readings, TheRecordHoldsTheSizesOfStreamEstimateAndValues) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = one_seed_in(folder.path() / "run");
  request.arms = {"bft"};
  request.settings = small_with({{"epochs", 1}, {"embedding_factor", "sqrt_width"}});
  const experiment::Result result = trained(request, split);
  const auto model = open_recommender(request.out / "bft" / "seed-3").model;
  std::vector<std::int64_t> users(static_cast<std::size_t>(split.users()));
  std::iota(users.begin(), users.end(), 0);
  const auto layers = static_cast<std::size_t>(request.settings.model.value("layers", 2));
  for (const auto& [curve, site] : std::map<std::string, std::string>{
           {"stream_size", "hook_resid_pre"}, {"estimate_size", "attn.hook_z"}, {"value_size", "attn.hook_v"}}) {
    std::vector<double> found(layers, 0);
    hooks::Hooks hooks;
    for (std::size_t layer = 0; layer < layers; ++layer)
      hooks.observe(hooks::block_site(static_cast<std::int64_t>(layer), site),
                    [&, layer](const hooks::Site&, const at::Tensor& seen) {
                      found[layer] = std::sqrt(seen.to(at::kDouble).square().mean().item<double>());
                    });
    model->run(pack_training(split, users, model->view()), {}, hooks);
    ASSERT_EQ(result.filter.at(curve).size(), layers);  // one epoch
    for (std::size_t layer = 0; layer < layers; ++layer)
      EXPECT_NEAR(result.filter.at(curve)[layer], found[layer], 1e-6 * found[layer]) << curve << " " << layer;
  }
}

TEST(Readings, AnInitialRangeIsTakenAsItIs) {
  const TemporaryFolder folder;
  RecommendRequest request = one_seed_in(folder.path() / "run");
  request.arms = {"bft"};
  request.settings = small_with({{"epochs", 1}, {"initial_precision", "count"}, {"initial_range", 3}});
  const data::LeaveOneOut split = ring_of(60, 23);
  trained(request, split);
  const auto model = open_recommender(request.out / "bft" / "seed-3").model;
  EXPECT_EQ(model->filter()->initial_precision_weights().range.item<double>(), 3);
}

TEST(Readings, EachLayerCanBeginAnewWithATauRangeOfItsOwn) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = one_seed_in(folder.path() / "run");
  request.arms = {"bft"};
  request.settings = small_with({{"epochs", 2}, {"initial_precision", "count"}, {"predict", "prior"}});
  trained(request, split);
  const auto model = open_recommender(request.out / "bft" / "seed-3").model;
  const bft::InitialPrecisionWeights& first = model->filter()->initial_precision_weights();
  const std::vector<bft::FilterWeights*> layers = model->filter()->layer_filter_weights();
  ASSERT_GE(layers.size(), 2u);
  const at::Tensor range = layers[0]->range;  // of the layer after it
  EXPECT_NE(range.item<double>(), first.range.item<double>());
  EXPECT_FALSE(layers[0]->process_noise.defined() || layers[0]->stretch.defined());

  const PackedSequences packed = pack_training(split, std::vector<std::int64_t>{0, 1, 2}, model->view());
  const at::Tensor tau = (range * first.base.index_select(0, packed.items)).clamp(1e-3, 100).unsqueeze(1);
  const auto second_precision = [&](bool replaces) {
    at::Tensor found;
    hooks::Hooks hooks;
    hooks.observe(hooks::block_site(1, bft::precision_site),
                  [&](const hooks::Site&, const at::Tensor& seen) { found = seen.clone(); });
    if (replaces)
      hooks.replace(hooks::Glob(hooks::block_site(0, bft::observation_site).name),
                    [](const hooks::Site&, const at::Tensor& seen) { return seen * 3; });
    model->run(packed, {}, hooks);
    return found;
  };
  const at::Tensor found = second_precision(false);
  EXPECT_TRUE(at::equal(found, tau.expand_as(found)));
  EXPECT_TRUE(at::equal(second_precision(true), found));
}

TEST(Readings, AWarmUpOfEpochsLetsTheFilterActAfterThem) {
  const TemporaryFolder folder;
  RecommendRequest request = one_seed_in(folder.path() / "run");
  request.arms = {"bft"};
  request.settings = small_with({{"epochs", 4}, {"warm_up", 2}, {"warm_up_unit", "epochs"}});
  const experiment::Result result = trained(request, ring_of(60, 23));
  const std::vector<double>& gain = result.filter.at("gain");
  const std::size_t layers = gain.size() / 4;
  for (std::size_t epoch = 0; epoch < 4; ++epoch) EXPECT_EQ(std::isnan(gain[epoch * layers]), epoch < 2) << epoch;
}

TEST(Readings, SeenItemsCanStayCandidatesInEveryRanking) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = one_seed_in(folder.path() / "run");
  request.arms = {"plain", "popularity"};
  request.settings = small_with({{"epochs", 1}, {"keep_seen", true}});
  const RecommendOutcome outcome = train_recommend(request, split);
  const auto model = open_recommender(request.out / "plain" / "seed-3").model;
  BackboneScorer scorer(*model);
  const std::vector<float> kept = rank_all(scorer, split, data::HeldOut::test, {.keep_seen = true}),
                           excluded = rank_all(scorer, split, data::HeldOut::test);
  EXPECT_EQ(outcome.seeds.at(0).result.scores.at("rank"), std::vector<double>(kept.begin(), kept.end()));
  EXPECT_NE(kept, excluded);
  request.settings.keep_seen = false;
  request.out = folder.path() / "excluded";
  const RecommendOutcome other = train_recommend(request, split);
  EXPECT_NE(other.seeds.at(1).result.scores.at("rank"),
            outcome.seeds.at(1).result.scores.at("rank"));  // of the baseline
}

TEST(Readings, ThatCannotBeAreRefused) {
  SasRecConfig config{.items = 40, .norm = NormPlace::post, .arm = Arm::bft};
  check(config, "f");
  config.filter.jacobian = bft::JacobianForm::exact;
  config.filter.norm_jacobian = true;
  EXPECT_THAT(refusal_of([&] { check(config, "f"); }), HasSubstr("the MLP reads the stream itself"));
  EXPECT_THAT(refusal_of([&] { small_with({{"embedding_deviation", 0}}); }), HasSubstr("must be above 0"));
  EXPECT_THAT(refusal_of([&] { small_with({{"embedding_factor", "two"}}); }), HasSubstr("one or sqrt_width"));
}

TEST(FilterCurves, ThatAnEarlierFileLacksHaveNoValue) {
  std::map<std::string, std::vector<double>> filter = {{"gain", {0.5, 0.25}}};
  runfile::complete_filter(filter);
  EXPECT_EQ(filter.size(), runfile::filter_curves().size());
  EXPECT_EQ(filter.at("gain"), (std::vector<double>{0.5, 0.25}));
  ASSERT_EQ(filter.at("stream_size").size(), 2u);
  EXPECT_TRUE(std::isnan(filter.at("stream_size")[1]));
  std::map<std::string, std::vector<double>> none;
  runfile::complete_filter(none);
  EXPECT_TRUE(none.empty());
}

}  // namespace readings_test
}  // namespace gainlens::recommend
