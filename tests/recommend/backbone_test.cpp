#include "recommend/backbone.h"

#include "core/error.h"
#include "recommend/backbone_keys.h"
#include "recommend/recommend_task.h"
#include "recommend/recommender_checkpoint.h"
#include "recommend/recommender_files.h"
#include "recommend/settings.h"
#include "recommend/small_data.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <span>
#include <string>
#include <vector>

namespace gainlens::recommend {
namespace backbone_test {

using gainlens::testing::refusal_of;
using gainlens::testing::TemporaryFolder;
using ::testing::HasSubstr;

bool equal(const at::Tensor& found, const std::vector<std::int64_t>& expected) {
  return at::equal(found, at::tensor(expected, at::kLong));
}

TEST(PackedHistories, KeepTheLastInteractionsWithTheirPlacesAndTimes) {
  const std::vector<data::ItemId> one{5, 6, 7, 8}, two{9};
  const std::vector<double> times{1, 2, 3, 4}, time{7};
  const std::vector<data::History> histories{{one, times}, {two, time}};
  const PackedSequences end = pack(histories, {.positions = 3, .alignment = Alignment::end, .times = true});
  EXPECT_TRUE(equal(end.items, {6, 7, 8, 9}));
  EXPECT_TRUE(equal(end.places, {0, 1, 2, 2}));
  EXPECT_TRUE(at::equal(end.times, at::tensor({2.0, 3.0, 4.0, 7.0}, at::kDouble)));
  const PackedSequences start = pack(histories, {.positions = 3, .alignment = Alignment::start});
  EXPECT_TRUE(equal(start.places, {0, 1, 2, 0}));
  EXPECT_FALSE(start.times.defined());
  EXPECT_TRUE(equal(start.last_rows(), {2, 3}));
  const std::vector<data::History> timeless{{one, {}}};
  const PackedSequences asked = pack(histories, {.positions = 3, .mask = 99});
  EXPECT_TRUE(equal(asked.items, {7, 8, 99, 9, 99}));
  EXPECT_TRUE(equal(asked.places, {0, 1, 2, 1, 2}));
  EXPECT_TRUE(equal(asked.last_rows(), {2, 4}));
  EXPECT_THAT(refusal_of([&] { pack(timeless, {.positions = 3, .times = true}); }), HasSubstr("has no times"));
}

TEST(PackedHistories, OfATrainingEndBeforeTheLastTrainingItem) {
  const data::LeaveOneOut split = split_of({{1, 2, 3, 4, 5, 6}, {1, 2, 3}}, 6);  // training: 1 2 3 4 | 1
  const std::vector<std::int64_t> users{0, 1};
  const PackedSequences packed = pack_training(split, users, {.positions = 2});
  EXPECT_TRUE(equal(packed.items, {2, 3}));
}

/// A model of the default settings, small.
ModelPlan small_plan() {
  return {.options = {{"width", 8}, {"inner_width", 16}, {"positions", 5}}, .items = 9};
}

TEST(Backbones, EachIsMadeStoredAndOpened) {
  std::set<std::string> names;
  for (const BackboneKind& kind : backbones()) {
    SCOPED_TRACE(kind.name);
    EXPECT_TRUE(names.insert(kind.name).second);
    EXPECT_EQ(&backbone_named(kind.name, "b"), &kind);
    ModelPlan plan = small_plan();
    for (auto option = plan.options.begin(); option != plan.options.end();) {
      const bool known = std::ranges::any_of(kind.knobs, [&](const auto& knob) { return knob.key == option.key(); });
      option = known ? std::next(option) : plan.options.erase(option);
    }
    kind.check(plan, "plan");
    const auto model = kind.make(plan, 3);
    EXPECT_EQ(&model->kind(), &kind);
    EXPECT_EQ(model->items(), 9);
    EXPECT_EQ(model->view().positions, kind.view(plan).positions);
    EXPECT_EQ(Json(model->document()).at("model_type"), model_type_of(kind.name));
    EXPECT_EQ(Json(model->document()).at("items"), 9);  // catalogue_size() reads it
    EXPECT_GT(kind.memory(plan).parameters, 0);
    EXPECT_FALSE(model->facts().empty());

    const TemporaryFolder folder;
    save_recommender(folder.path(), *model, {.item_names = "n"}, "3");
    const RecommenderCheckpoint read = open_recommender(folder.path());
    EXPECT_EQ(read.seed, "3");
    EXPECT_EQ(Json(read.model->document()), Json(model->document()));
    EXPECT_EQ(catalogue_size(folder.path()), 9);
    const at::NoGradGuard no_gradients;
    const std::vector<data::ItemId> items{3, 9, 1, 4, 4, 2};
    const std::vector<double> times{1, 2, 30, 400, 5000, 60000};
    const std::vector<data::History> history{{items, times}};
    const PackedSequences packed = pack(history, model->view());
    const at::Tensor hidden = model->run(packed);
    EXPECT_EQ(hidden.sizes(), (std::vector<std::int64_t>{5, model->head().size(1)}));
    EXPECT_EQ(model->head().size(0), 9);
    EXPECT_TRUE(at::equal(read.model->run(packed), hidden));
  }
}

TEST(WeightSlots, AreSelectedByTheirRoleInOrder) {
  at::Tensor first = at::ones({1}), second = at::ones({2}), constant = at::ones({3}), precision = at::ones({4});
  const std::vector<WeightSlot> slots{{"z", {1}, &first, WeightRole::weight, {}},
                                      {"rank", {3}, &constant, WeightRole::constant, {}},
                                      {"slope", {4}, &precision, WeightRole::precision, {}},
                                      {"a", {2}, &second, WeightRole::weight, {}}};
  const std::vector<models::NamedTensor> weights = parameters_of(slots, WeightRole::weight);
  ASSERT_EQ(weights.size(), 2);
  EXPECT_EQ(weights[0].name, "z");
  EXPECT_EQ(weights[1].name, "a");
  EXPECT_TRUE(weights[0].tensor.is_same(first));
  EXPECT_TRUE(weights[1].tensor.is_same(second));
  const std::vector<models::NamedTensor> precisions = parameters_of(slots, WeightRole::precision);
  ASSERT_EQ(precisions.size(), 1);
  EXPECT_EQ(precisions[0].name, "slope");
}

TEST(Backbones, HaveTheirKeysInTheListOfCommandsWithoutLibtorch) {
  for (const BackboneKind& kind : backbones()) {
    std::vector<std::string> keys;
    for (const auto& knob : knobs(kind)) keys.push_back(knob.key);
    EXPECT_EQ(settings_keys(kind.name, "f"), keys) << kind.name;
  }
}

TEST(Backbones, MissingTimesAreRefused) {
  const data::LeaveOneOut split = ring_of(20, 9);
  BackboneKind kind = backbones().front();
  Settings settings;
  settings.backbone = &kind;
  check_training(settings, Arm::plain, split, "--arm plain");
  kind.view = [](const ModelPlan&) { return HistoryView{.positions = 5, .times = true}; };
  EXPECT_THAT(refusal_of([&] { check_training(settings, Arm::plain, split, "--arm plain"); }),
              HasSubstr("--arm plain: backbone " + kind.name + " needs the time of each interaction"));
  training::SingleReplica alone;
  EXPECT_THAT(refusal_of([&] {
                RecommendTask(
                    settings, Arm::plain, split, 7, [](Backbone&) { return Json(); }, alone);
              }),
              HasSubstr("needs the time"));
}

}  // namespace backbone_test
}  // namespace gainlens::recommend
