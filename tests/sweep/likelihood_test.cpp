#include "sweep/likelihood.h"

#include "core/error.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gainlens::sweep {
namespace likelihood_test {

/// A model whose logits are its stream.
class Identity : public hooks::HookedModel {
 public:
  hooks::Stream forward(const hooks::Tokens&, const hooks::ForwardOptions&, const hooks::Hooks&) override { return {}; }
  at::Tensor unembed(const at::Tensor& normalized) override {
    largest_block = std::max(largest_block, normalized.size(0));
    return normalized;
  }
  std::vector<hooks::SiteShape> sites() const override { return {}; }
  const hooks::AttentionLayout& layout() const override { return layout_; }
  std::int64_t largest_block = 0;

 private:
  hooks::AttentionLayout layout_;
};

TEST(Likelihood, UniformLogitsGiveTheLogOfTheVocabulary) {
  Identity model;
  const std::vector<std::int32_t> tokens = {0, 1, 2, 3};
  EXPECT_NEAR(mean_negative_log_likelihood(model, at::zeros({1, 4, 5}), tokens), std::log(5.0), 1e-6);
}

TEST(Likelihood, EachPositionPredictsTheNextToken) {
  Identity model;
  at::Tensor logits = at::zeros({1, 3, 2}, at::kDouble);
  logits[0][0][1] = std::log(3.0);  // token 1 has probability 3/4
  logits[0][1][0] = std::log(9.0);  // token 0 has probability 9/10
  const std::vector<std::int32_t> tokens = {0, 1, 0};
  EXPECT_NEAR(mean_negative_log_likelihood(model, logits, tokens), (std::log(4.0 / 3) + std::log(10.0 / 9)) / 2, 1e-12);
}

TEST(Likelihood, LogitsAreMadeInBlocks) {
  Identity model;
  constexpr std::int64_t vocabulary = 1 << 21;  // gives blocks of 32 positions
  const std::vector<std::int32_t> tokens(40, 7);
  const at::Tensor logits = at::zeros({1, 1, 1}).expand({1, 40, vocabulary});
  EXPECT_NEAR(mean_negative_log_likelihood(model, logits, tokens), std::log(static_cast<double>(vocabulary)), 1e-5);
  EXPECT_EQ(model.largest_block, 32);
}

TEST(Likelihood, NaNNamesThePosition) {
  Identity model;
  at::Tensor logits = at::zeros({1, 4, 5});
  logits[0][2][0] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::int32_t> tokens = {0, 1, 2, 3};
  EXPECT_THAT([&] { mean_negative_log_likelihood(model, logits, tokens); },
              ::testing::ThrowsMessage<RunFailed>(::testing::HasSubstr("logits at position 2 are NaN")));
}

TEST(Likelihood, OneTokenPredictsNothing) {
  Identity model;
  const std::vector<std::int32_t> tokens = {0};
  EXPECT_THROW(mean_negative_log_likelihood(model, at::zeros({1, 1, 5}), tokens), InvalidArgument);
}

}  // namespace likelihood_test
}  // namespace gainlens::sweep
