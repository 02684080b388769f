#include "bft/filter_options.h"

#include "bft/arm.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::bft {
namespace filter_options_test {

using gainlens::testing::refusal_of;
using ::testing::HasSubstr;

FilterOptions with(const Json& changes) {
  FilterOptions options;
  set_knobs(filter_knobs(), options, changes, "f");
  return options;
}

std::string contradiction(const Json& changes) {
  return refusal_of([&] { check(with(changes), "f"); });
}

TEST(FilterOptions, AreReadAsTheyAreWritten) {
  const Json written = Json(knobs_to_json(filter_knobs(), FilterOptions()));
  EXPECT_EQ(with(written), FilterOptions());
  EXPECT_EQ(written.size(), filter_knobs().size());
  EXPECT_EQ(written.at("estimator"), "reml");
  // Each knob changes what it names.
  const Json changed = {{"estimator", "kish"},
                        {"prior_strength", 2},
                        {"prior_variance", 0.5},
                        {"score_noise", 0.1},
                        {"kriging", "per_dimension"},
                        {"predict", "decay"},
                        {"jacobian", "exact"},
                        {"jacobian_rank", 3},
                        {"norm_jacobian", true},
                        {"running_jacobian", false},
                        {"discount", 0.5},
                        {"most_process_noise", 2},
                        {"process_noise_start", -1},
                        {"initial_precision", "em"},
                        {"initial_gain", 0.5},
                        {"initial_gain_of_data", false},
                        {"initial_range", 1},
                        {"recency_decay", false},
                        {"decay_owner", "head"},
                        {"initial_decay", 0.9},
                        {"output_projection", true},
                        {"gain_place", "after"},
                        {"least_precision", 0.1},
                        {"most_precision", 7},
                        {"warm_up", 1},
                        {"warm_up_unit", "epochs"},
                        {"warm_up_form", "blend"}};
  const Json found = Json(knobs_to_json(filter_knobs(), with(changed)));
  for (const auto& [key, value] : found.items()) {
    ASSERT_TRUE(changed.contains(key)) << key;
    EXPECT_EQ(value, changed.at(key)) << key;
    EXPECT_NE(value, written.at(key)) << key;
  }
  EXPECT_THAT(refusal_of([] { with({{"kriging", "scalr"}}); }), HasSubstr("did you mean 'scalar'"));
  EXPECT_THAT(refusal_of([] { with({{"discount", 1}}); }), HasSubstr("at least 1e-06 and below 1"));
}

TEST(FilterOptions, ThatContradictEachOtherAreRefused) {
  check(FilterOptions(), "f");
  EXPECT_THAT(contradiction({{"estimator", "sandwich"}, {"initial_precision", "em"}}), HasSubstr("with a likelihood"));
  EXPECT_THAT(contradiction({{"estimator", "kish"}, {"kriging", "per_dimension"}}), HasSubstr("it needs reml"));
  EXPECT_THAT(contradiction({{"estimator", "reml_naive"}}), HasSubstr("0/0"));
  EXPECT_THAT(contradiction({{"estimator", "kish"}, {"prior_strength", 0}}), HasSubstr("0/0"));
  EXPECT_THAT(contradiction({{"norm_jacobian", true}}), HasSubstr("needs 'jacobian' exact"));
  EXPECT_THAT(contradiction({{"least_precision", 5}, {"most_precision", 5}}), HasSubstr("'most_precision' is 5"));
  EXPECT_THAT(contradiction({{"estimator", "delta_weight_free"}}), HasSubstr("needs 'score_noise'"));
}

TEST(FilterOptions, ThatChangeNothingBesideOthersHaveAReason) {
  for (const Knob<FilterOptions>& knob : filter_knobs()) {
    const bool acts = knob.key != "score_noise" && knob.key != "discount" && knob.key != "gain_place";
    EXPECT_EQ(why_idle(FilterOptions(), knob.key).empty(), acts) << knob.key;
  }
  for (const char* key : {"prior_strength", "prior_variance"}) {
    for (const char* estimator : {"sandwich", "delta"})
      EXPECT_THAT(why_idle(with({{"estimator", estimator}}), key), HasSubstr(estimator));
    EXPECT_EQ(why_idle(with({{"estimator", "kish"}}), key), "");
  }
  EXPECT_EQ(why_idle(with({{"jacobian", "exact"}}), "jacobian_rank"), "'jacobian' is \"exact\"");
  EXPECT_EQ(why_idle(with({{"jacobian", "none"}}), "running_jacobian"), "'jacobian' is \"none\"");
  EXPECT_EQ(why_idle(with({{"jacobian", "exact"}}), "running_jacobian"), "");
  for (const char* predict : {"discount", "decay"}) {
    EXPECT_EQ(why_idle(with({{"predict", predict}}), "discount"), "");
    EXPECT_THAT(why_idle(with({{"predict", predict}}), "most_process_noise"), HasSubstr(predict));
    EXPECT_THAT(why_idle(with({{"predict", predict}}), "process_noise_start"), HasSubstr(predict));
  }
  EXPECT_EQ(why_idle(with({{"most_process_noise", 0}}), "process_noise_start"), "'most_process_noise' is 0.0");
  EXPECT_EQ(why_idle(with({{"initial_precision", "count"}}), "initial_gain"), "");
  EXPECT_EQ(why_idle(with({{"initial_precision", "table"}}), "initial_gain"), "'initial_precision' is \"table\"");
  EXPECT_EQ(why_idle(with({{"initial_precision", "em"}}), "initial_gain"), "");
  EXPECT_EQ(why_idle(with({{"initial_precision", "em"}}), "initial_gain_of_data"), "");
  EXPECT_EQ(why_idle(with({{"recency_decay", false}}), "initial_decay"), "'recency_decay' is false");
  for (const char* key : {"warm_up_form", "warm_up_unit"})
    EXPECT_EQ(why_idle(with({{"warm_up", 0}}), key), "'warm_up' is 0");
  EXPECT_EQ(why_idle(with({{"recency_decay", false}}), "decay_owner"), "'recency_decay' is false");
  EXPECT_EQ(why_idle(with({{"initial_range", 1}}), "initial_gain"), "'initial_range' is 1.0");
  EXPECT_EQ(why_idle(with({{"initial_range", 1}, {"initial_precision", "em"}}), "initial_gain"), "");
  EXPECT_EQ(why_idle(with({{"initial_precision", "table"}}), "initial_range"), "'initial_precision' is \"table\"");
  EXPECT_EQ(why_idle(FilterOptions(), "gain_place"), "'output_projection' is false");
  EXPECT_EQ(why_idle(with({{"output_projection", true}}), "gain_place"), "");
  EXPECT_EQ(why_idle(with({{"estimator", "delta_weight_free"}, {"score_noise", 1}}), "score_noise"), "");
}

TEST(Filter, TakesItsGainsFromMomentsWithOneWeightForAllDimensions) {
  const auto from_moments = [](const Json& changes) { return Filter{Arm::bft, with(changes)}.gains_from_moments(); };
  for (const char* estimator : {"reml", "reml_naive", "reml_conjugate"})
    EXPECT_TRUE(from_moments({{"estimator", estimator}})) << estimator;
  for (const char* estimator : {"kish", "sandwich", "delta"})
    EXPECT_FALSE(from_moments({{"estimator", estimator}})) << estimator;
  EXPECT_FALSE(from_moments({{"kriging", "per_dimension"}}));
}

}  // namespace filter_options_test
}  // namespace gainlens::bft
