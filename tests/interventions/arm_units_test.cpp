#include "interventions/arm_units.h"

#include "interventions/measured_decoder.h"
#include "interventions/run_interventions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace gainlens::interventions {
namespace arm_units_test {

using ::testing::ElementsAre;

Arm arm_at(std::int64_t layer, const std::string& site, Mode mode) {
  Arm arm;
  PlacedWrite& placed = arm.writes.emplace_back();
  placed.write.site = site;
  placed.write.mode = mode;
  placed.place.layer = layer;
  return arm;
}

class ArmUnitsTest : public ::testing::Test {
 protected:
  const std::vector<Arm> arms_ = {arm_at(2, "c", Mode::zero), arm_at(-1, "a", Mode::mean), arm_at(2, "d", Mode::mean)};
  const ArmUnits units_{arms_};
};

TEST_F(ArmUnitsTest, AreTheArmsOfALayer) {
  EXPECT_THAT(units_.places(2), ElementsAre(0, 2));
  EXPECT_THAT(units_.arms(2), ElementsAre(&arms_[0], &arms_[2]));
  EXPECT_THAT(units_.sites(Mode::mean, {}), ElementsAre("a", "d"));
  EXPECT_THAT(units_.sites(Mode::mean, {2}), ElementsAre("d"));
  EXPECT_EQ(units_.work({-1, 2}), 3);
  EXPECT_EQ(unit_words(-1), "embedding");
  EXPECT_EQ(unit_words(3), "layer 3");
}

TEST_F(ArmUnitsTest, WhatIsNotStoredIsMissing) {
  std::vector<int> taken;
  const auto missing =
      units_.take_stored([](std::int64_t layer) { return layer == 2 ? std::optional(7) : std::nullopt; },
                         [&](int unit) { taken.push_back(unit); });
  EXPECT_THAT(missing, ElementsAre(-1));
  EXPECT_THAT(taken, ElementsAre(7));
}

TEST(MeasuredDecoder, IsLoadedAsTheOptionsSay) {
  InterveneOptions options;
  options.ignored_config_keys = {"b", "a"};
  EXPECT_THAT(ignored_keys(options), ElementsAre("a", "b"));
  options.ignored_config_keys.clear();
  options.dtype = at::kDouble;
  const auto checkpoint = models::open_checkpoint(GAINLENS_SOURCE_DIR "/tests/golden/models/llama", {});
  EXPECT_EQ(measured_decoder(checkpoint, options)->config().layers, checkpoint.config.layers);
}

}  // namespace arm_units_test
}  // namespace gainlens::interventions
