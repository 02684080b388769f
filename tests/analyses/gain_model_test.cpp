#include "analyses/gain_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::analyses {
namespace gain_model_test {

using ::testing::HasSubstr;

TEST(GainModel, ErrorsByHand) {
  const GainMeans shortest{1, 0.5, 0.5};
  EXPECT_DOUBLE_EQ(aggregated_precision(shortest, 0.5), 2);
  EXPECT_DOUBLE_EQ(*fitted_prior_precision(shortest, 0.5), 2);
  EXPECT_DOUBLE_EQ(predicted_gain({3, 0.5, 0}, 0.5, 2), 4.0 / 6);
  const auto errors = gain_errors(shortest, {{3, 0.5, 0.6}, {7, 0.5, 0.8}}, 0.5, 0.5);
  EXPECT_NEAR(errors->max_relative, 1.0 / 9, 1e-12);
  EXPECT_NEAR(errors->max_constant, 0.375, 1e-12);
  EXPECT_NEAR(*errors->skill(), 1 - (1.0 / 9) / (1.0 / 6 + 0.375), 1e-12);
  EXPECT_THAT(gain_errors({1, 0.5, 1}, {shortest}, 1, 0.5).reason(), HasSubstr("0 < K < 1"));
  EXPECT_THAT(gain_errors(shortest, {{3, 0.5, 0}}, 0.5, 0.5).reason(), HasSubstr("K is 0"));
  EXPECT_THAT(gain_errors(shortest, {shortest}, 0.5, 0.5)->skill().reason(), HasSubstr("does not change"));
}

TEST(GainModel, TheConstantIsThatOfTheJudgedText) {
  const GainMeans shortest{1, 0.5, 0.5};
  const auto errors = gain_errors(shortest, {{3, 0.5, 0.8}}, 0.6, 0.5);  // lambda from K = 0.5, the constant 0.6
  EXPECT_NEAR(errors->max_relative, 1.0 / 6, 1e-12);                     // (0.8 - 2/3) / 0.8
  EXPECT_NEAR(errors->max_constant, 0.25, 1e-12);
  EXPECT_THAT(gain_errors(shortest, {shortest}, std::nan(""), 0.5).reason(), HasSubstr("no finite K"));
}

}  // namespace gain_model_test
}  // namespace gainlens::analyses
