#include "interventions/stream_reading.h"

#include "core/error.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace gainlens::interventions {
namespace stream_reading_test {

/// A model whose logits are its stream.
class Identity : public hooks::HookedModel {
 public:
  hooks::Stream forward(const hooks::Tokens&, const hooks::ForwardOptions&, const hooks::Hooks&) override { return {}; }
  at::Tensor unembed(const at::Tensor& normalized) override { return normalized; }
  std::vector<hooks::SiteShape> sites() const override { return {}; }
  const hooks::AttentionLayout& layout() const override { return layout_; }

 private:
  hooks::AttentionLayout layout_;
};

const std::vector<std::int32_t> tokens = {0, 1, 2, 1};

TEST(StreamReading, HasTheLossOfEachNextToken) {
  Identity model;
  at::Tensor base = at::zeros({1, 4, 3}, at::kDouble), changed = base.clone();
  changed[0][1][2] = std::log(2.0);  // token 2 follows, now with probability 1/2
  changed[0][3][0] = -5;             // no token follows
  const auto readings = read_streams(model, base, {{changed, 1}}, tokens);
  ASSERT_EQ(readings.size(), 2u);
  for (const double loss : readings[0].losses) EXPECT_NEAR(loss, std::log(3.0), 1e-15);
  EXPECT_EQ(readings[0].largest_change, 0);
  ASSERT_EQ(readings[1].losses.size(), 3u);
  EXPECT_EQ(readings[1].losses[0], readings[0].losses[0]);
  EXPECT_NEAR(readings[1].losses[1], std::log(2.0), 1e-15);
  EXPECT_NEAR(readings[1].losses[2], std::log(3.0), 1e-15);
  EXPECT_EQ(readings[1].largest_change, 5);
}

/// The loss of the last tokens alone, and the changes that stand where they are predicted or behind them.
TEST(StreamReading, ReadsTheLastTargetsAlone) {
  Identity model;
  at::Tensor base = at::zeros({1, 4, 3}, at::kDouble), changed = base.clone();
  changed[0][0][0] = 100;  // predicts token 1, which is not asked for
  changed[0][1][2] = std::log(2.0);
  changed[0][3][0] = -5;
  const auto readings = read_streams(model, base, {{changed, 0}}, tokens, {.pair = {}, .reference = {}, .targets = 2});
  ASSERT_EQ(readings[1].losses.size(), 2u);
  EXPECT_NEAR(readings[1].losses[0], std::log(2.0), 1e-15);
  EXPECT_NEAR(readings[1].losses[1], std::log(3.0), 1e-15);
  EXPECT_EQ(readings[1].largest_change, 5);
  EXPECT_TRUE(read_streams(model, base, {}, tokens, {.pair = {}, .reference = {}, .targets = 0})[0].losses.empty());
  // A stream that changes behind the first target has the base's losses before.
  const auto late = read_streams(model, base, {{changed, 2}}, tokens, {.pair = {}, .reference = {}, .targets = 2});
  EXPECT_EQ(late[1].losses[0], late[0].losses[0]);
}

/// Targets that end before the document: the logits after them are read for an answer alone.
TEST(StreamReading, ReadsTargetsInTheMiddle) {
  Identity model;
  at::Tensor base = at::zeros({1, 4, 3}, at::kDouble), changed = base.clone();
  changed[0][1][2] = std::log(2.0);  // predicts the token at position 2
  changed[0][2][0] = 100;            // predicts the token at position 3, which is not asked for
  changed[0][3][0] = -5;
  Question question{.pair = {}, .reference = {}, .targets = 1, .after = 1};
  const auto found = read_streams(model, base, {{changed, 0}}, tokens, question);
  ASSERT_EQ(found[1].losses.size(), 1u);
  EXPECT_NEAR(found[1].losses[0], std::log(2.0), 1e-15);
  EXPECT_NEAR(found[1].largest_change, std::log(2.0), 1e-15);
  EXPECT_EQ(found[1].answer, std::nullopt);
  question.pair = AnswerPair{1, 0};
  const auto answered = read_streams(model, base, {{changed, 3}}, tokens, question);
  EXPECT_EQ(answered[0].answer, 0);
  EXPECT_EQ(answered[1].answer, 5);
  EXPECT_EQ(answered[1].largest_change, 5);
  EXPECT_EQ(answered[1].losses, answered[0].losses);
}

TEST(StreamReading, RefusesLogitsThatAreNotFinite) {
  Identity model;
  at::Tensor base = at::zeros({1, 4, 3});
  for (const std::int64_t position : {1, 3}) {
    at::Tensor broken = base.clone();
    broken[0][position][0] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THROW(read_streams(model, base, {{broken, 0}}, tokens), RunFailed) << position;
  }
}

}  // namespace stream_reading_test
}  // namespace gainlens::interventions
