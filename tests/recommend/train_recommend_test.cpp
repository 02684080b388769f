#include "recommend/train_recommend.h"

#include "core/error.h"
#include "core/ranking_metrics.h"
#include "recommend/finished_seeds.h"
#include "recommend/recommender_checkpoint.h"
#include "recommend/small_data.h"
#include "recommend/small_training.h"
#include "recommend/train_seed.h"
#include "runfile/recommend_run.h"
#include "support/file_bytes.h"
#include "support/recording_listener.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::recommend {
namespace train_recommend_test {

using gainlens::testing::bytes_of;
using gainlens::testing::refusal_of;
using gainlens::testing::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(TrainRecommend, LearnsWhatFollows) {
  const TemporaryFolder folder;
  RecommendRequest request = request_in(folder.path() / "run");
  request.settings.epochs = 40;
  request.arms = {"plain", "popularity", "markov"};
  const RecommendOutcome outcome = train_recommend(request, ring_of(120, 23));
  ASSERT_EQ(outcome.seeds.size(), 6u);
  for (const auto& [job, result, seconds] : outcome.seeds) {
    SCOPED_TRACE(job.arm);
    const double found = result.test.at("hr@5");
    EXPECT_TRUE(job.arm == "popularity" ? found < 0.7 : found > 0.95) << found;
    EXPECT_EQ(result.best_epoch > 0, job.arm == "plain");
  }
}

TEST(TrainRecommend, ValidationItemsAreRankedByTheModelThatIsTested) {
  const TemporaryFolder folder;
  RecommendRequest request = request_in(folder.path() / "run");
  request.arms = {"plain", "bft", "markov"};
  const data::LeaveOneOut split = ring_of(60, 23);
  for (const auto& [job, result, seconds] : train_recommend(request, split).seeds) {
    SCOPED_TRACE(job.arm);
    const std::vector<double>& ranks = result.scores.at("validation_rank");
    ASSERT_EQ(ranks.size(), 60u);
    if (result.best_epoch == 0) continue;
    for (const char* metric : {"ndcg@10", "mrr"})
      EXPECT_DOUBLE_EQ(mean_of(parse_ranking_metric(metric), ranks),
                       result.curve.at(metric)[static_cast<std::size_t>(result.best_epoch) - 1]);
  }
  const runfile::RecommendRun run = runfile::read_recommend_run(request.out);
  for (std::int64_t user = 0; user < 60; ++user)
    EXPECT_EQ(run.validation_target[static_cast<std::size_t>(user)], split.target(user, data::HeldOut::validation));
}

TEST(TrainRecommend, SeedsSideBySideAreThoseOneByOne) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest beside = request_in(folder.path() / "beside"), alone = request_in(folder.path() / "alone");
  beside.threads = 2;
  EXPECT_EQ(train_recommend(beside, split).seeds_at_once, 2);
  EXPECT_EQ(train_recommend(alone, split).seeds_at_once, 1);
  for (const char* file : {"plain/seed-3/result.safetensors", "plain/seed-3/model.safetensors",
                           "plain/seed-4/result.safetensors", "plain/seed-4/model.safetensors"}) {
    const std::string expected = bytes_of(alone.out / file);
    EXPECT_FALSE(expected.empty());
    EXPECT_TRUE(bytes_of(beside.out / file) == expected) << file;
  }
}

TEST(TrainRecommend, GrowsBySeedsAndRefusesAnotherRequest) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = request_in(folder.path() / "run");
  train_recommend(request, split);
  request.seeds = 3;
  request.threads = 8;  // the run keeps its one thread for each seed
  const RecommendOutcome more = train_recommend(request, split);
  EXPECT_EQ(more.threads_of_seed, 1);
  EXPECT_EQ(more.seeds_at_once, 3);
  EXPECT_EQ(more.seeds[0].seconds, 0);  // done before
  EXPECT_GT(more.seeds[2].seconds, 0);
  EXPECT_EQ(more.seeds[2].job.seed, 5u);
  request.settings.dropout = 0.2;
  EXPECT_THAT(refusal_of([&] { train_recommend(request, split); }), HasSubstr("dropout is 0.1 in the stored request"));
  EXPECT_THAT(refusal_of([&] { train_recommend(request_in(folder.path() / "run"), ring_of(59, 23)); }),
              HasSubstr("in the stored request"));
}

TEST(TrainRecommend, EachArmIsTrainedWithEachVariant) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = request_in(folder.path() / "run");
  request.arms = {"plain", "bft"};
  request.seeds = 1;
  request.variants = {{"narrow", {{"width", 8}}}, {"long", {{"epochs", 8}, {"patience", 0}}}};
  const RecommendOutcome outcome = train_recommend(request, split);
  ASSERT_EQ(outcome.seeds.size(), 4u);
  EXPECT_EQ(outcome.seeds[3].job.folder, request.out / "bft/long/seed-3");
  EXPECT_EQ(runfile::epochs_of(outcome.seeds[3].result), 8);

  // A variant has the numbers of a run with its settings.
  RecommendRequest alone = request;
  alone.out = folder.path() / "alone";
  alone.variants = {};
  alone.settings.model["width"] = 8;
  train_recommend(alone, split);
  for (const char* arm : {"plain", "bft"})
    EXPECT_TRUE(bytes_of(request.out / arm / "narrow/seed-3/model.safetensors") ==
                bytes_of(alone.out / arm / "seed-3/model.safetensors"));

  // The file of the run has them as arms of their own, also after another call with another variant, or with none.
  request.variants = {{"deep", {{"layers", 3}}}};
  train_recommend(request, split);
  request.variants = {};
  train_recommend(request, split);
  const ProvenRun proven = read_proven_run(request.out);
  EXPECT_EQ(proven.compared, 8u);
  EXPECT_THAT(proven.run.arms, ::testing::ElementsAre("plain", "plain/deep", "plain/long", "plain/narrow", "bft",
                                                      "bft/deep", "bft/long", "bft/narrow"));
  EXPECT_EQ(proven.run.request.at("variants").size(), 3u);
  const auto layers = [&](std::size_t arm) {
    const runfile::TrainedSeed& seed = *proven.run.result(arm, 0);
    return seed.filter.at("gain").size() / seed.curve.at("hr@10").size();
  };
  EXPECT_EQ(layers(4), 2u);
  EXPECT_EQ(layers(5), 3u);
  EXPECT_EQ(proven.run.result(3, 0)->scores.at("rank"),
            runfile::read_recommend_run(alone.out).result(0, 0)->scores.at("rank"));
  EXPECT_EQ(label_of_folder(request.out / "bft/long/seed-3"), "bft/long");
  EXPECT_EQ(label_of_folder(request.out / "bft/seed-3"), "bft");
}

TEST(TrainRecommend, TheRunsOwnSettingsAreTrainedBesideTheVariantsWhereAsked) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = one_seed_in(folder.path() / "run");
  request.settings.epochs = 1;
  request.variants = {{"narrow", {{"width", 8}}}};
  request.own_settings_too = true;
  const RecommendOutcome outcome = train_recommend(request, split);
  ASSERT_EQ(outcome.seeds.size(), 2u);
  EXPECT_EQ(outcome.seeds[0].job.folder, request.out / "plain/seed-3");
  EXPECT_EQ(outcome.seeds[1].job.folder, request.out / "plain/narrow/seed-3");
  EXPECT_THAT(runfile::read_recommend_run(request.out).arms, ::testing::ElementsAre("plain", "plain/narrow"));
}

TEST(TrainRecommend, VariantsThatCannotBeToldApartAreRefused) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = request_in(folder.path() / "run");
  const auto refusal = [&](const std::vector<Variant>& variants) {
    request.variants = variants;
    return refusal_of([&] { train_recommend(request, split); });
  };
  EXPECT_EQ(refusal({{"a", {{"width", 8}}}, {"b", {{"width", 8.0}, {"dropout", 0.1}}}}),
            "--variant b: 'width' is 8.0; must be a whole number below 2^63");
  EXPECT_EQ(refusal({{"a", {{"width", 8}}}, {"b", {{"width", 8}, {"dropout", 0.1}}}}),
            "--variant b: has the same settings as variant a; leave one of them out");
  EXPECT_THAT(refusal({{"a", {{"dropout", 0.1}}}}), HasSubstr("--variant a: changes nothing"));
  EXPECT_THAT(refusal({{"a", {{"widht", 8}}}}),
              HasSubstr("--variant a: 'widht' is not a known key; did you mean 'width'"));
  EXPECT_THAT(refusal({{"a", {{"width", 8}}}, {"a", {{"width", 4}}}}), HasSubstr("--variant a: stands twice"));
  EXPECT_THAT(refusal({{"../a", {{"width", 8}}}}), HasSubstr("'../a' cannot be the name of a variant"));
  EXPECT_THAT(refusal({{"a", {{"heads", 3}}}}), HasSubstr("--variant a: "));
  EXPECT_FALSE(std::filesystem::exists(request.out));
  request.variants = {{"a", {{"width", 8}}}};
  train_recommend(request, split);
  EXPECT_THAT(refusal({{"b", {{"width", 8}}}}), HasSubstr("--variant b: has the same settings as variant a"));
  EXPECT_THAT(refusal({{"a", {{"width", 4}}}}), HasSubstr("/variants/a/width is 8 in the stored request and 4 in"));
}

TEST(TrainRecommend, MoreEpochsContinueToTheBitsOfAnUninterruptedTraining) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  for (const std::int64_t patience : {0, 2}) {
    SCOPED_TRACE(patience);
    const std::string name = patience == 0 ? "all" : "patient";
    RecommendRequest whole = request_in(folder.path() / (name + "-whole")), parts = request_in(folder.path() / name);
    for (RecommendRequest* request : {&whole, &parts}) {
      request->arms = {"plain", "bft", "markov"};
      request->settings.patience = patience;
      request->settings.epochs = 9;
    }
    train_recommend(whole, split);
    parts.settings.epochs = 5;
    train_recommend(parts, split);
    parts.settings.epochs = 9;
    parts.data_name = "moved";
    train_recommend(parts, split);
    for (const char* file :
         {"run.h5", "request.json", "plain/seed-3/result.safetensors", "bft/seed-4/model.safetensors",
          "bft/seed-4/result.safetensors", "bft/seed-4/training/state.safetensors", "markov/seed-3/result.safetensors"})
      EXPECT_TRUE(bytes_of(parts.out / file) == bytes_of(whole.out / file)) << file;
    parts.settings.epochs = 8;
    EXPECT_THAT(refusal_of([&] { train_recommend(parts, split); }),
                HasSubstr("/training/epochs is 9 in the stored request and 8 in this one"));
  }
}

TEST(TrainRecommend, SeedsOfFewerEpochsAreLeftOutOfTheRunFile) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = request_in(folder.path() / "run");
  request.settings.patience = 0;
  train_recommend(request, split);
  request.settings.epochs = 7;
  request.seeds = 1;
  train_recommend(request, split);
  runfile::RecommendRun run = runfile::read_recommend_run(request.out);
  EXPECT_EQ(run.request.at("training").at("epochs"), 7);
  EXPECT_EQ(run.seeds, (std::vector<std::uint64_t>{3, 4}));
  EXPECT_EQ(run.result(0, 0)->curve.at("hr@10").size(), 7u);
  EXPECT_FALSE(run.result(0, 1).has_value());
  request.seeds = 2;
  train_recommend(request, split);
  EXPECT_EQ(runfile::read_recommend_run(request.out).result(0, 1)->curve.at("hr@10").size(), 7u);
}

TEST(TrainRecommend, EverySeedIsReadBack) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = request_in(folder.path() / "run");
  request.arms = {"plain", "popularity"};
  request.settings.epochs = 1;
  constexpr std::uint64_t half = std::uint64_t{1} << 63, most = std::numeric_limits<std::uint64_t>::max();
  for (const auto& [seed, seeds] :
       {std::pair<std::uint64_t, std::int64_t>{0, 1}, {half - 1, 2}, {most - 1, 2}, {most, 1}}) {
    request.seed = seed;
    request.seeds = seeds;
    EXPECT_EQ(train_recommend(request, split).seeds.front().job.seed, seed);
    EXPECT_EQ(train_recommend(request, split).seeds.front().seconds, 0) << "was trained again";
  }
  const ProvenRun proven = read_proven_run(request.out);
  EXPECT_EQ(proven.run.seeds, (std::vector<std::uint64_t>{0, half - 1, half, most - 1, most}));
  EXPECT_EQ(proven.compared, 10u);
  EXPECT_THAT(refusal_of([] { check_seeds(most, 2); }), HasSubstr("go beyond 2^64 - 1"));
  EXPECT_THAT(refusal_of([] { check_seeds(0, 1000000); }), HasSubstr("at most 10000 are supported"));
  check_seeds(most - 9999, 10000);
}

TEST(TrainRecommend, AnExplodedLossIsSaid) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = one_seed_in(folder.path() / "run");
  EXPECT_EQ(runfile::divergence_of(train_recommend(request, split).seeds[0].result, 23), "");
  request.out = folder.path() / "exploded";
  request.settings.learning_rate = 1000;
  EXPECT_THAT(runfile::divergence_of(train_recommend(request, split).seeds[0].result, 23),
              HasSubstr("its last training loss is "));
  EXPECT_THAT(runfile::divergence_of(train_recommend(request, split).seeds[0].result, 23),
              HasSubstr("its last training loss is "));
}

TEST(TrainRecommend, NanIsNamedByEpochAndBatch) {
  const TemporaryFolder folder;
  RecommendRequest request = request_in(folder.path() / "run");
  request.settings.learning_rate = 1e30;
  request.seeds = 1;
  EXPECT_THAT([&] { train_recommend(request, ring_of(60, 23)); },
              ThrowsMessage<RunFailed>(::testing::ContainsRegex("epoch [0-9]+, batch [0-9]+")));
}

TEST(TrainRecommend, EveryArmIsTrainedAndItsFilterIsKept) {
  const TemporaryFolder folder;
  RecommendRequest request = request_in(folder.path() / "run");
  request.seeds = 1;
  request.arms.clear();
  for (const Arm arm : arms_of()) request.arms.emplace_back(name_of(arm));
  request.settings.precision_learning_rate = 1;  // the first epoch leaves the gain near where it begins
  const data::LeaveOneOut split = ring_of(60, 23);
  train_recommend(request, split);
  const runfile::RecommendRun run = runfile::read_recommend_run(request.out);
  ASSERT_EQ(run.arms.size(), arms_of().size());
  for (std::size_t i = 0; i < run.arms.size(); ++i) {
    SCOPED_TRACE(run.arms[i]);
    const auto& result = run.result(i, 0);
    ASSERT_TRUE(result.has_value());
    const RecommenderCheckpoint checkpoint = open_recommender(request.out / run.arms[i] / "seed-3");
    EXPECT_EQ(Json(checkpoint.model->document()).value("arm", "plain"), run.arms[i]);
    if (find_arm(run.arms[i])->factor != AttentionFactor::kalman_gain) {
      EXPECT_TRUE(result->filter.empty());
      continue;
    }
    // Two layers; the filter acts from the second step on, so after each epoch.
    const std::size_t epochs = result->curve.at("training_loss").size();
    for (const runfile::FilterCurve& curve : runfile::filter_curves()) {
      const std::vector<double>& values = result->filter.at(std::string(curve.name));
      ASSERT_EQ(values.size(), 2 * epochs) << curve.name;
      for (std::size_t j = 0; j < values.size(); ++j)
        EXPECT_EQ(std::isnan(values[j]),
                  curve.name == "share_of_raised_sums" || (curve.name == "stretch" && j % 2 == 1))
            << curve.name;
    }
    if (run.arms[i] == "bft") {
      EXPECT_NEAR(result->filter.at("gain").front(), 0.9, 0.1);  // K0
    }
    const auto& precision = result->filter.at("precision");
    EXPECT_GT(precision[1], precision[0]);  // more is known after the first layer
  }
}

TEST(TrainRecommend, ContradictionsAreRefusedBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  RecommendRequest request = request_in(folder.path() / "run");
  request.arms = {"plain", "bft"};
  request.settings.model["norm"] = "post";
  request.settings.filter.jacobian = bft::JacobianForm::exact;
  request.settings.filter.norm_jacobian = true;
  EXPECT_THAT(refusal_of([&] { train_recommend(request, ring_of(60, 23)); }),
              HasSubstr("--arm bft: 'norm' is post, and 'norm_jacobian' is true"));
  EXPECT_FALSE(std::filesystem::exists(request.out));
}

TEST(TrainRecommend, AFilterThatNeverActsIsSaid) {
  const TemporaryFolder folder;
  RecommendRequest request = one_seed_in(folder.path() / "run");
  request.arms = {"plain", "bft"};
  const auto said = [&](std::int64_t warm_up) {
    request.out = folder.path() / std::to_string(warm_up);
    request.settings.filter.warm_up = warm_up;
    const gainlens::testing::RecordingListener listener;
    train_recommend(request, ring_of(60, 23));
    return listener.notices();
  };
  EXPECT_THAT(said(23), ::testing::IsEmpty());  // 6 epochs of 4 steps
  EXPECT_THAT(said(24),
              ::testing::ElementsAre(HasSubstr(
                  "warning: --arm bft: the filter does not act in this training: its warm-up takes 24 steps")));
}

TEST(TrainRecommend, NeedsUsersWithAPosition) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal_of([&] {
                train_recommend(request_in(folder.path() / "run"), split_of({{1, 2, 3}}, 3));
              }),
              HasSubstr("no user has two training items"));
  EXPECT_THAT(refusal_of([] { check_arms({"plane"}); }), HasSubstr("did you mean 'plain'"));
  EXPECT_THAT(refusal_of([] { check_arms({"plain", "plain"}); }), HasSubstr("given twice"));
}

}  // namespace train_recommend_test
}  // namespace gainlens::recommend
