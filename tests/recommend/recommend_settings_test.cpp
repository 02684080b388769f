#include "core/json.h"
#include "recommend/settings.h"
#include "recommend/small_data.h"
#include "recommend/small_training.h"
#include "recommend/training_memory.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace gainlens::recommend {
namespace recommend_settings_test {

using gainlens::testing::refusal_of;
using ::testing::HasSubstr;

TEST(RecommendSettings, AreReadAsTheyAreWritten) {
  const Settings settings = small();
  const Json document = Json(to_json(settings));
  EXPECT_EQ(document.size(), knobs().size());
  EXPECT_EQ(Json(to_json(settings_of(document, "again"))), document);
  EXPECT_EQ(document["width"], 16);
  EXPECT_EQ(document["loss"], "full");
  const auto refusal = [](const Json& changes) { return refusal_of([&] { settings_of(changes, "f.json"); }); };
  EXPECT_THAT(refusal({{"droput", 0.1}}), HasSubstr("f.json: 'droput' is not a known key; did you mean 'dropout'"));
  EXPECT_THAT(refusal({{"dropout", 1}}), HasSubstr("must be at least 0 and below 1"));
  EXPECT_THAT(refusal({{"dropout", "much"}}), HasSubstr("must be a number"));
  EXPECT_THAT(refusal({{"epochs", 0}}), HasSubstr("must be at least 1"));
  EXPECT_THAT(refusal({{"epochs", 1.5}}), HasSubstr("must be a whole number"));
  EXPECT_THAT(refusal({{"loss", "ful"}}), HasSubstr("must be full or sampled"));
  EXPECT_THAT(refusal({{"embedding_norm", 1}}), HasSubstr("must be true or false"));
  EXPECT_THAT(refusal({{"heads", 3}}), HasSubstr("must divide"));
  EXPECT_THAT(refusal(3), HasSubstr("must be an object"));
  EXPECT_THAT(refusal_of([] { preset("papers"); }),
              HasSubstr("must be one of paper, paper-no-norm, beauty-tuned, tuned; did you mean 'paper'"));
  EXPECT_THAT(refusal({{"estimator", "sandwich"}, {"initial_precision", "em"}}), HasSubstr("with a likelihood"));
  const Settings tuned = settings_of(preset("beauty-tuned"), "preset");
  EXPECT_EQ(tuned.filter.initial_precision, bft::InitialPrecision::count);
  EXPECT_EQ(tuned.filter.most_precision, 20);
  EXPECT_EQ(tuned.epochs, 300);
}

TEST(Presets, DifferFromTheDefaultsByTheNormAlone) {
  EXPECT_EQ(presets().front().name, "paper");
  const Json defaults = Json(to_json(Settings())), paper = Json(to_json(settings_of(preset("paper"), "preset")));
  EXPECT_EQ(Json(to_json(settings_of(preset("paper-no-norm"), "preset"))), defaults);
  EXPECT_EQ(Json::diff(defaults, paper),
            Json::parse(R"([{"op": "replace", "path": "/embedding_norm", "value": true}])"));
}

TEST(Presets, LeaveOutTheNormOfABackboneWithoutIt) {
  BackboneKind other = backbones().front();
  other.name = "other";
  std::erase_if(other.knobs, [](const auto& knob) { return knob.key == "embedding_norm"; });
  EXPECT_FALSE(preset("paper", other).contains("embedding_norm"));
  EXPECT_TRUE(preset("beauty-tuned", backbones().front()).contains("embedding_norm"));
}

TEST(Presets, OfABackboneAreItsOwn) {
  const BackboneKind& hstu = backbone_named("hstu", "test");
  const Settings settings = settings_of(preset("reference", hstu), "preset", hstu);
  EXPECT_EQ(settings.loss, LossKind::sampled);
  EXPECT_EQ(settings.model.at("output"), "unit");
  EXPECT_EQ(settings.dropout, 0.2);  // the backbone's own default
  EXPECT_THAT(refusal_of([] { preset("reference"); }), HasSubstr("'reference'; must be one of paper"));
  EXPECT_EQ(settings_of(preset("tuned"), "preset").model.at("norm"), "post");
  EXPECT_THAT(refusal_of([&] { preset("tuned", hstu); }), HasSubstr("'tuned'; must be one of paper"));
}

TEST(TrainingMemory, GrowsWithTheBatchAndRefusesWhatDoesNotFit) {
  const data::LeaveOneOut split = ring_of(2000, 23);
  Settings settings = small();
  const std::uint64_t one = training_memory(settings, split);
  settings.batch = 1000;
  const std::uint64_t many = training_memory(settings, split);
  EXPECT_GT(many, one);
  settings.batch = 2000000;  // there are only 2,000 users
  EXPECT_LT(training_memory(settings, split), 3 * many);
  check_memory(settings, split, 2);
  settings.model["width"] = 16384;
  settings.model["inner_width"] = 262144;
  settings.model["layers"] = 1000;
  EXPECT_THAT(refusal_of([&] { check_memory(settings, split, 2); }), HasSubstr("no batch fits"));
}

}  // namespace recommend_settings_test
}  // namespace gainlens::recommend
