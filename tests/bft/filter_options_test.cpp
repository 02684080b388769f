#include "bft/filter_options.h"

#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::bft {
namespace {

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
                        {"recency_decay", false},
                        {"initial_decay", 0.9},
                        {"output_projection", true},
                        {"least_precision", 0.1},
                        {"most_precision", 7},
                        {"warm_up", 1},
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

}  // namespace
}  // namespace gainlens::bft
