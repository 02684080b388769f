// The slopes of one backward pass against central differences of exact interventions.
#include "interventions/gradient_pass.h"

#include "core/error.h"
#include "interventions/document_passes.h"
#include "models/random_decoder.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace gainlens::interventions {
namespace gradient_pass_test {

using gainlens::testing::every_option;
using gainlens::testing::NamedConfig;
using gainlens::testing::random_decoder;
using ::testing::HasSubstr;

constexpr std::int64_t length = 13;

std::vector<std::int32_t> document(const models::DecoderConfig& config) {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < length; ++i) ids.push_back((i * 17 + 5) % static_cast<std::int32_t>(config.vocabulary));
  return ids;
}

Arm arm_of(const std::string& text, const models::Decoder& model, at::ScalarType dtype) {
  Arm arm = place_arm(parse_intervention(text), model.config(), model.sites(), length, dtype);
  arm.may_do_nothing = true;
  return arm;
}

void expect_slopes(models::Decoder& model, at::ScalarType dtype, double step, double tolerance) {
  const auto ids = document(model.config());
  for (const Question& question : {Question{}, Question{.pair = AnswerPair{3, 8}, .reference = {}}}) {
    for (const std::string place :
         {"hook_embed[position=3]", "blocks.0.hook_resid_pre[position=5]", "blocks.0.hook_mlp_out",
          "blocks.1.attn.hook_v[head=0]", "ln_final.hook_normalized[position=12]"}) {
      const Arm up = arm_of(place + "=" + fmt::format("{}", 1 + step), model, dtype),
                down = arm_of(place + "=" + fmt::format("{}", 1 - step), model, dtype);
      const GradientPass pass(model, ids, {up.writes.front().write.site}, {}, question);
      const std::vector<double> changes = exact_changes(model, ids, {&up, &down}, {}, {}, {}, question);
      const double expected = (changes[0] - changes[1]) / 2;
      EXPECT_NEAR(pass.estimate(up, {}, {}).change / step, expected / step, tolerance)
          << place << (question.pair ? ", pair" : "");
    }
  }
}

class Slopes : public ::testing::TestWithParam<NamedConfig> {};

TEST_P(Slopes, AreThoseOfCentralDifferences) {
  models::Decoder model = random_decoder(GetParam().config);
  if (GetParam().config.filter) {
    EXPECT_THAT(gainlens::testing::refusal_of([&] { GradientPass(model, document(model.config()), {}, {}, {}); }),
                HasSubstr("the model has a Bayesian filter, whose Jacobian passes no slope"));
    return;
  }
  expect_slopes(model, at::kDouble, 1e-4, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(EveryOption, Slopes, ::testing::ValuesIn(every_option()),
                         [](const auto& tested) { return tested.param.name; });

/// Frozen weights are packed for the processor; with a slope they are multiplied otherwise.
TEST(GradientPass, TakesFrozenModelsInFloat32) {
  models::Decoder model = random_decoder(gainlens::testing::small_config(), at::kFloat);
  expect_slopes(model, at::kFloat, 0.01, 2e-3);
}

TEST(GradientPass, AddsUpTheWritesOfAnArm) {
  models::Decoder model = random_decoder(gainlens::testing::small_config());
  const auto ids = document(model.config());
  const std::string a = "blocks.0.attn.hook_z[head=1]=zero", b = "blocks.1.hook_mlp_out=0.5";
  const GradientPass pass(model, ids, {"blocks.0.attn.hook_z", "blocks.1.hook_mlp_out"}, {}, {});
  const auto estimate = [&](const std::string& text) {
    return pass.estimate(arm_of(text, model, at::kDouble), {}, {}).change;
  };
  EXPECT_NEAR(estimate(a + " + " + b), estimate(a) + estimate(b), 1e-12);
  EXPECT_NE(estimate(a), 0);
}

/// What no slope reaches, and what writes what stood there up to rounding, is not seen to do anything.
TEST(GradientPass, KnowsWhatIsRoundingAlone) {
  models::Decoder model = random_decoder(gainlens::testing::small_config(), at::kFloat);
  const auto ids = document(model.config());
  const GradientPass pass(model, ids, {"blocks.1.hook_resid_pre"}, {}, {.pair = AnswerPair{3, 8}, .reference = {}});
  const auto acts = [&](const std::string& text) {
    return pass.estimate(arm_of("blocks.1.hook_resid_pre" + text, model, at::kFloat), {}, {}).acts();
  };
  EXPECT_TRUE(acts("[position=12]=zero"));
  EXPECT_TRUE(acts("[position=12]=0.5"));
  EXPECT_FALSE(acts("[position=12]=1.0000001"));
  EXPECT_FALSE(GradientPass(model, ids, {"ln_final.hook_normalized"}, {}, {.pair = AnswerPair{3, 8}, .reference = {}})
                   .estimate(arm_of("ln_final.hook_normalized[position=3]=zero", model, at::kFloat), {}, {})
                   .acts());
}

TEST(GradientPass, DrawsPlacesOfEachKindBySeed) {
  std::vector<std::string> kinds(100, "a");
  kinds.insert(kinds.end(), {"b", "b", "b", "b"});
  std::vector<bool> acts(104, true);
  for (std::size_t i = 0; i < 60; ++i) acts[i] = false;
  acts[101] = false;
  const std::vector<std::size_t> places = drawn_places(kinds, acts, 1);
  ASSERT_EQ(places.size(), exact_ones + 3);
  EXPECT_TRUE(std::ranges::is_sorted(places));
  EXPECT_EQ(std::set<std::size_t>(places.begin(), places.end()).size(), places.size());
  EXPECT_GE(places.front(), 60u);
  EXPECT_THAT(std::vector<std::size_t>(places.end() - 3, places.end()), ::testing::ElementsAre(100, 102, 103));
  EXPECT_EQ(drawn_places(kinds, acts, 1), places);
  EXPECT_NE(drawn_places(kinds, acts, 2), places);
}

TEST(GradientPass, SaysWhatItCannotDo) {
  EXPECT_THAT(gainlens::testing::refusal_of([] { check_can_approximate(true); }),
              HasSubstr("leave --stream-weights out"));
}

}  // namespace gradient_pass_test
}  // namespace gainlens::interventions
