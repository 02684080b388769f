// Hooks of a decoder with a filter and its controls: what observes changes nothing, what replaces acts in training too.
#include "core/error.h"
#include "models/checkpoint/initial_weights.h"
#include "models/decoder/decoder_sites.h"
#include "models/decoder/filter_config.h"
#include "models/random_decoder.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gainlens::models {
namespace decoder_hooks_test {

using gainlens::testing::filter_for_tests;
using gainlens::testing::RandomWeights;
using gainlens::testing::small_config;
using gainlens::testing::some_tokens;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

DecoderConfig config_of(const std::string& arm) {
  DecoderConfig config = small_config();
  config.family = "llama";  // for the names of its parameters
  if (arm == "plain") return config;
  config.filter = filter_for_tests();
  config.filter_arm = decoder_arm(arm, "test");
  return config;
}

class DecoderHooks : public ::testing::TestWithParam<std::string> {
 protected:
  /// The stream of a forward pass in float32, and of a training step the gradients and the sums of the stretch.
  std::vector<at::Tensor> results(bool training, const hooks::Hooks& hooks) {
    DecoderWeights weights = RandomWeights(1, at::kFloat).of(config_);
    std::vector<NamedTensor> leaves;
    for (const WeightRole role : {WeightRole::weight, WeightRole::precision}) {
      for (const NamedTensor& leaf : decoder_parameters(config_, weights, role)) leaves.push_back(leaf);
    }
    std::vector<at::Tensor> found;
    if (!training) {
      const at::NoGradGuard no_gradients;
      Decoder model(config_, weights);
      return {model.forward(tokens_, {}, hooks).hidden};
    }
    for (NamedTensor& leaf : leaves) leaf.tensor.requires_grad_(true);
    Decoder model(config_, weights, WeightUse::trained);
    const at::Tensor hidden = model.forward(tokens_, {.training = true, .stretch_sums = &found}, hooks).hidden;
    hidden.square().sum().backward();
    found.push_back(hidden.detach());
    for (const NamedTensor& leaf : leaves)
      found.push_back(leaf.tensor.grad().defined() ? leaf.tensor.grad() : at::zeros({1}));
    return found;
  }

  DecoderConfig config_ = config_of(GetParam());
  hooks::Tokens tokens_ = some_tokens(config_, 2, 20);
};

TEST_P(DecoderHooks, ObservingAnySiteChangesNoBit) {
  for (const bool training : {true, false}) {
    const std::vector<at::Tensor> alone = results(training, {});
    for (const hooks::SiteShape& site : decoder_sites(config_)) {
      std::int64_t seen = 0;
      std::int64_t dimensions = 0;
      hooks::Hooks observers;
      observers.observe(hooks::Glob(site.site.name), [&](const hooks::Site&, const at::Tensor& x) {
        ++seen;
        dimensions = x.dim();
      });
      const std::vector<at::Tensor> observed = results(training, observers);
      EXPECT_EQ(seen, 1) << site.site.name;
      EXPECT_EQ(dimensions, std::ssize(site.shape)) << site.site.name;
      ASSERT_EQ(alone.size(), observed.size());
      for (std::size_t i = 0; i < alone.size(); ++i)
        ASSERT_TRUE(at::equal(alone[i], observed[i])) << site.site.name << (training ? " in training" : "");
    }
  }
}

TEST_P(DecoderHooks, AnInterventionActsInTrainingToo) {
  const at::Tensor alone = results(true, {}).at(config_.armed_filter().has_jacobian() ? 1 : 0);
  for (const hooks::SiteShape& site : decoder_sites(config_)) {
    if (site.site == hooks::logits_site()) continue;
    hooks::Hooks changed;
    changed.replace(hooks::Glob(site.site.name), [](const hooks::Site&, const at::Tensor& x) {
      return x * 0.5 + 0.1 * (1 + at::arange(x.size(-1)));
    });
    const at::Tensor found = results(true, changed).at(config_.armed_filter().has_jacobian() ? 1 : 0);
    EXPECT_FALSE(at::allclose(found, alone)) << site.site.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Arms, DecoderHooks, ::testing::ValuesIn(decoder_arm_names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(DecoderGain, ReplacedByZeroInTrainingAddsNothing) {
  const DecoderConfig config = config_of("bft");
  DecoderWeights weights = RandomWeights(1, at::kFloat).of(config);
  Decoder model(config, weights, WeightUse::trained);
  hooks::Hooks none;
  at::Tensor added;
  const auto zeros = [](const hooks::Site&, const at::Tensor& x) { return at::zeros_like(x); };
  none.replace(hooks::Glob("blocks.0.attn.hook_gain"), zeros);
  none.observe(hooks::Glob("blocks.0.hook_attn_out"), [&](const auto&, const at::Tensor& x) { added = x.detach(); });
  model.forward(some_tokens(config, 1, 12), {.training = true}, none);
  EXPECT_EQ(added.abs().max().item<double>(), 0);
}

TEST(DecoderGain, CannotBeReplacedWhileTheFilterIsNotInForce) {
  const DecoderConfig config = config_of("bft");
  DecoderWeights weights = RandomWeights(1, at::kFloat).of(config);
  weights.precision.strength.zero_();
  Decoder model(config, weights);
  hooks::Hooks replaced;
  replaced.replace(hooks::Glob("blocks.1.attn.hook_gain"), [](const hooks::Site&, const at::Tensor& x) { return x; });
  EXPECT_THAT([&] { model.forward(some_tokens(config, 1, 5), {}, replaced); },
              ThrowsMessage<InvalidArgument>(HasSubstr("hook blocks.1.attn.hook_gain: the filter is not in force")));
}

/// lambda of each layer and lambda_obs, of a decoder whose filter is followed.
TEST(FollowedFilter, ChangesNoBitAndItsPrecisionFollowsTheEquations) {
  for (const bool gated : {true, false}) {
    DecoderConfig config = small_config();
    config.gated_mlp = gated;
    const DecoderWeights weights = RandomWeights(1, at::kFloat).of(config);
    const hooks::Tokens tokens = some_tokens(config, 2, 20);
    Decoder plain(config, weights), followed(config, weights);
    bft::FilterOptions options = filter_for_tests();
    options.jacobian = bft::JacobianForm::exact;
    followed.follow_filter(options, 3);
    const at::NoGradGuard no_gradients;
    std::map<std::string, at::Tensor> seen;
    hooks::Hooks observers;
    observers.observe(hooks::Glob("blocks.*"),
                      [&](const hooks::Site& site, const at::Tensor& x) { seen[site.name] = x.clone(); });
    const at::Tensor expected = plain.forward(tokens, {}, {}).hidden;
    EXPECT_TRUE(at::equal(followed.forward(tokens, {}, {}).hidden, expected));
    EXPECT_TRUE(at::equal(followed.forward(tokens, {}, observers).hidden, expected));
    const at::Tensor first = seen.at("blocks.0.hook_precision");
    EXPECT_TRUE(at::allclose(first, at::full_like(first, 3 + std::log(2.0))));
    // lambda'' = 1 / (stretch / (lambda + lambda_obs) + Q), of the first layer.
    const at::Tensor posterior = (first + seen.at("blocks.0.attn.hook_observation_precision").flatten(2))
                                     .clamp(options.least_precision, options.most_precision);
    const double noise = std::log1p(std::exp(options.process_noise_start)) * options.most_process_noise;
    const at::Tensor predicted = 1 / (seen.at("blocks.0.mlp.hook_stretch") / posterior + noise);
    EXPECT_TRUE(at::allclose(seen.at("blocks.1.hook_precision"),
                             predicted.clamp(options.least_precision, options.most_precision), 1e-5));
    EXPECT_THAT([&] { followed.follow_filter(options, 3); },
                ThrowsMessage<InvalidArgument>(HasSubstr("has a filter of its own")));
  }
}

}  // namespace decoder_hooks_test
}  // namespace gainlens::models
