// What BERT4Rec has beside SASRec: attention in both directions, a mask, a head with a bias.
#include "core/error.h"
#include "models/decoder/attention_ops.h"
#include "recommend/full_ranking.h"
#include "recommend/learned.h"
#include "recommend/recommend_task.h"
#include "recommend/sasrec.h"
#include "recommend/sasrec_goldens.h"
#include "recommend/small_data.h"
#include "recommend/small_training.h"
#include "support/refusal.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gainlens::recommend {
namespace bert4rec_test {

using gainlens::testing::refusal_of;
using ::testing::HasSubstr;

const std::vector<std::string> goldens = {
    "bert4rec-pre",        "bert4rec-post", "bert4rec-bft", "bert4rec-bft-sandwich", "bert4rec-bft-per-dimension",
    "bert4rec-plain-decay"};

TEST(Bert4Rec, ABatchIsThatOfPackedSequencesWithEverySite) {
  const std::vector<std::vector<data::ItemId>> sequences = {{3, 9, 4, 1}, {8, 8, 2, 5}};
  const std::vector<std::span<const data::ItemId>> spans(sequences.begin(), sequences.end());
  const at::Tensor ids = at::tensor({3, 9, 4, 1, 13, 8, 8, 2, 5, 13}, at::kLong).view({2, 5});  // 13: the mask
  const at::NoGradGuard no_gradients;
  for (const std::string& name : goldens) {
    SCOPED_TRACE(name);
    SasRec model = model_of(name);
    const at::Tensor packed = model.run(pack(spans, model.config()));
    std::size_t seen = 0;
    hooks::Hooks observers;
    observers.observe(hooks::Glob("*"), [&](const hooks::Site&, const at::Tensor&) { ++seen; });
    const at::Tensor found = model.forward({ids}, {}, observers).hidden;
    EXPECT_LT(relative(found.flatten(0, 1), packed.to(at::kDouble)), 1e-6);
    EXPECT_EQ(seen, model.sites().size());
    for (const hooks::SiteShape& site : model.sites()) {
      if (site.site == hooks::logits_site()) continue;  // cannot be replaced
      hooks::Hooks itself, changed;
      itself.replace(hooks::Glob(site.site.name), [](const hooks::Site&, const at::Tensor& x) { return x.clone(); });
      EXPECT_LT(relative(model.forward({ids}, {}, itself).hidden, found.to(at::kDouble)), 1e-5) << site.site.name;
      changed.replace(hooks::Glob(site.site.name), [](const hooks::Site&, const at::Tensor& x) {
        return x * 0.5 + 0.1 * (1 + at::arange(x.size(-1)));
      });
      EXPECT_FALSE(at::allclose(model.forward({ids}, {}, changed).hidden, found)) << site.site.name;
    }
    if (model.armed_filter().has_biased_scores()) continue;
    models::UsualAttention usual;
    std::int64_t queries = 0;
    models::StatisticsAttention statistics(
        [&](std::int64_t, kernels::QueryStatistics&& all) { queries += all.n_eff.gt(1).sum().item<std::int64_t>(); });
    for (hooks::AttentionOp* operation : std::initializer_list<hooks::AttentionOp*>{&usual, &statistics}) {
      hooks::ForwardOptions options;
      options.attention = operation;
      EXPECT_LT(relative(model.forward({ids}, options, {}).hidden.flatten(0, 1), packed.to(at::kDouble)), 1e-6);
    }
    EXPECT_EQ(queries, 2 * 2 * 2 * 5) << "also the first query sees several keys: layers, sequences, heads, positions";
  }
}

TEST(Bert4Rec, EveryPositionSeesTheWholeHistoryAndNoOther) {
  const at::NoGradGuard no_gradients;
  for (const std::string& name : goldens) {
    SCOPED_TRACE(name);
    const SasRec model = model_of(name);
    std::vector<std::vector<data::ItemId>> sequences = {{3, 9, 4, 1}, {8, 8, 2}};
    const auto run = [&] {
      return model.run(
          pack(std::vector<std::span<const data::ItemId>>(sequences.begin(), sequences.end()), model.config()));
    };
    const at::Tensor before = run();
    sequences[0][3] = 7;
    const at::Tensor after = run();
    const at::Tensor moved = (after - before).abs().amax(1);
    EXPECT_GT(moved.narrow(0, 0, 5).min().item<float>(), 1e-4F);
    EXPECT_LT(moved.narrow(0, 5, 4).max().item<float>(), 1e-5F);
  }
}

TEST(Bert4Rec, ScoresHaveABiasAndTheMaskIsNoCandidate) {
  const at::NoGradGuard no_gradients;
  SasRec model = model_of("bert4rec-bft");
  const data::LeaveOneOut split = ring_of(9, 12);
  BackboneScorer scorer(model);
  const std::vector<data::History> history{split.interactions().history(3)};
  const at::Tensor user = scorer.represent(history), scores = scorer.scores(user, 0, 12);
  const at::Tensor logits = model.unembed(user);
  ASSERT_EQ(logits.sizes(), at::IntArrayRef({1, 14}));
  EXPECT_EQ(logits[0][0].item<double>(), -INFINITY);
  EXPECT_EQ(logits[0][13].item<double>(), -INFINITY);
  EXPECT_LT(relative(scores, logits.narrow(1, 1, 12).to(at::kDouble)), 1e-6);
  const at::Tensor without = at::mm(user, model.head().t());
  EXPECT_LT(relative(scores - without, model.head_bias().unsqueeze(0).to(at::kDouble)), 1e-5);
  EXPECT_LT(relative(scorer.scores(user, 5, 4), scores.narrow(1, 5, 4).to(at::kDouble)), 1e-6);
  const at::Tensor target = at::tensor({4}, at::kLong);
  const double loss = -scores.to(at::kDouble).log_softmax(1)[0][3].item<double>();
  EXPECT_NEAR(model.mean_loss(user, target).item<double>(), loss, 1e-5);
  EXPECT_NEAR(model.target_losses(user, target)[0].item<double>(), loss, 1e-5);
  // Even where the mask's own embedding would win.
  model.weights().item_embedding[13].copy_(1e3 * user[0]);
  const Recommendations best = recommend_all(scorer, split, 12, {.keep_seen = true});
  for (const data::ItemId item : best.items) EXPECT_TRUE(item >= 1 && item <= 12);
  const hooks::Tokens beyond{at::full({1, 2}, 14, at::kLong)};
  EXPECT_THAT(refusal_of([&] { model.forward(beyond, {}, {}); }),
              HasSubstr("ids from 14 to 14; the catalogue has 1 to 12, and 13 is the mask"));
  SasRecConfig config = model.config();
  config.positions = 1;
  EXPECT_THAT(refusal_of([&] { check(config, "c"); }), HasSubstr("'positions' is 1"));
}

TEST(Bert4Rec, ALossWithSampledNegativesReadsTheBias) {
  const data::LeaveOneOut split = ring_of(60, 23);
  Settings settings = small("bert4rec");
  settings.loss = LossKind::sampled;
  training::SingleReplica alone;
  RecommendTask task(
      settings, Arm::plain, split, 7, [](const Backbone&) { return Json(); }, alone);
  task.accumulate_gradients(0);
  for (const WeightSlot& slot : task.model().slots()) {
    ASSERT_TRUE(slot.tensor->grad().defined()) << slot.name;
    if (slot.name == "head.bias") {
      EXPECT_GT(slot.tensor->grad().abs().max().item<float>(), 0);
    }
  }
}

TEST(Bert4Rec, LearnsWhatFollows) {
  expect_what_follows_is_learned("bert4rec", ring_of(80, 23));
}

}  // namespace bert4rec_test
}  // namespace gainlens::recommend
