#include "analyses/effect_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::analyses {
namespace effect_map_test {

ControlledArm arm_of(const std::string& name, double delta, double low, std::size_t changed = 2) {
  return {{name, 1, delta, Interval{low, 2}, 1, 0, 1, changed}, std::nullopt, "why"};
}

TEST(EffectMap, HasOneForEachSiteAndValueOfSingleHeads) {
  const InterventionEffects effects{
      2,
      1,
      {arm_of("blocks.2.attn.hook_z[head=1]=zero", 0.5, 0.25), arm_of("blocks.0.attn.hook_z[head=0]=zero", -0.5, -1),
       arm_of("blocks.0.attn.hook_z[head=0]=mean", 7, 1), arm_of("blocks.0.attn.hook_z[head=0][position=3]=zero", 9, 1),
       arm_of("blocks.0.attn.hook_z[head=2]=zero + blocks.1.hook_mlp_out=zero", 9, 1),
       arm_of("blocks.0.hook_mlp_out=zero", 9, 1), arm_of("hook_embed=2", 9, 1)}};
  const std::vector<EffectMap> maps = head_maps(effects);
  ASSERT_EQ(maps.size(), 1u);  // of "mean" there is one head alone
  EXPECT_EQ(maps[0].title, "attn.hook_z = zero");
  EXPECT_EQ(maps[0].layers, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(maps[0].columns, 2);
  EXPECT_EQ(maps[0].at(1, 1), 0.5);
  EXPECT_EQ(maps[0].places, (std::vector<std::optional<std::size_t>>{1, std::nullopt, std::nullopt, 0}));
  EXPECT_FALSE(maps[0].doubtful_at(1, 1));
  EXPECT_EQ(maps[0].at(0, 0), -0.5);
  EXPECT_TRUE(maps[0].doubtful_at(0, 0));
  EXPECT_TRUE(std::isnan(maps[0].at(0, 1)));
}

TEST(EffectMap, ShowsTheLogitDifferenceWhereItWasAskedFor) {
  InterventionEffects effects{
      2,
      1,
      {arm_of("blocks.0.attn.hook_z[head=1]=zero", 0.5, 0.25), arm_of("blocks.0.attn.hook_z[head=0]=zero", -0.5, -1)}};
  for (ControlledArm& one : effects.arms) one.arm.answer = ChangedMean{3, 4, Interval{-1, 9}};
  const std::vector<EffectMap> maps = head_maps(effects);
  EXPECT_EQ(maps.at(0).at(0, 1), 4);
  EXPECT_TRUE(maps[0].doubtful_at(0, 1));
}

}  // namespace effect_map_test
}  // namespace gainlens::analyses
