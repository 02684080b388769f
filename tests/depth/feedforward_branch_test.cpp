// The branch against the decoder, and its Jacobian against central differences.
#include "depth/feedforward_branch.h"

#include "models/random_decoder.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::depth {
namespace feedforward_branch_test {

using models::DecoderConfig;
using testing::NamedConfig;
using testing::random_decoder;
using testing::RandomWeights;
using testing::small_config;
using testing::some_tokens;

/// The options of a decoder that change what a feed-forward layer adds to the stream, and norms in new combinations.
std::vector<NamedConfig> every_branch() {
  std::vector<NamedConfig> all;
  const std::set<std::string> options = {
      "plain",          "biases",           "gelu_tanh", "gelu_erf", "layer_norm",    "norm_offset",
      "sandwich_norm",  "post_norm",        "plain_mlp", "experts",  "shared_expert", "shared_expert_without_score",
      "residual_scale", "experts_in_groups"};
  for (NamedConfig& named : testing::every_option()) {
    if (options.contains(named.name)) all.push_back(std::move(named));
  }
  if (all.size() != options.size()) throw std::logic_error("an option of the decoder has another name");
  const auto add = [&](std::string name, auto change) {
    all.push_back({std::move(name), small_config()});
    change(all.back().config);
  };
  add("layer_norms_around_a_plain_mlp", [](DecoderConfig& c) {
    c.norm = models::Norm::layer;
    c.norm_bias = c.post_norm = c.mlp_bias = true;
    c.gated_mlp = false;
    c.activation = models::Activation::gelu_erf;
  });
  add("norms_around_experts", [](DecoderConfig& c) {
    c.post_norm = true;
    c.norm_offset = 1;
    c.residual_scale = 0.7;
    c.experts = {.count = 4, .per_token = 2, .width = 12, .shared_width = 20, .shared_score = true};
  });
  add("no_norm", [](DecoderConfig& c) { c.pre_norm = false; });
  return all;
}

at::Tensor some_stream(std::int64_t rows) {
  at::manual_seed(3);
  return 1.5 * at::randn({rows, 16}, at::kDouble) + 0.4;
}

/// [row, out, in] by central differences, the weights of experts held fixed.
at::Tensor jacobian_by_differences(const FeedForwardBranch& branch, const at::Tensor& stream) {
  const double step = 1e-5;
  const at::Tensor experts = branch.expert_weights(stream);
  std::vector<at::Tensor> columns;
  for (std::int64_t in = 0; in < stream.size(1); ++in) {
    at::Tensor error = at::zeros_like(stream);
    error.select(1, in).fill_(step);
    columns.push_back((branch.output(stream + error, experts) - branch.output(stream - error, experts)) / (2 * step));
  }
  return at::stack(columns, 2);
}

class EveryBranch : public ::testing::TestWithParam<NamedConfig> {};
INSTANTIATE_TEST_SUITE_P(Options, EveryBranch, ::testing::ValuesIn(every_branch()),
                         [](const auto& info) { return info.param.name; });

TEST_P(EveryBranch, JacobianIsThatOfCentralDifferences) {
  const c10::InferenceMode inference;
  const DecoderConfig& config = GetParam().config;
  const FeedForwardBranch branch(config, 0, RandomWeights(7, at::kDouble).of(config).layers[0]);
  const at::Tensor stream = some_stream(5);
  const at::Tensor expected = jacobian_by_differences(branch, stream).diagonal(0, 1, 2);
  const at::Tensor found = branch.jacobian_diagonal(stream);
  EXPECT_GT(expected.abs().min().item<double>(), 0);
  EXPECT_LT((found - expected).abs().max().item<double>(), 1e-6 * expected.abs().max().item<double>());
}

TEST_P(EveryBranch, AddsWhatTheDecoderAdds) {
  const c10::InferenceMode inference;
  const DecoderConfig& config = GetParam().config;
  const FeedForwardBranch branch(config, 1, RandomWeights(1, at::kDouble).of(config).layers[1]);
  models::Decoder model = random_decoder(config);
  at::Tensor middle, after;
  hooks::Hooks hooks;
  hooks.observe(hooks::block_site(1, "hook_resid_mid"), [&](auto&, const at::Tensor& seen) { middle = seen[0]; });
  hooks.observe(hooks::block_site(1, "hook_resid_post"), [&](auto&, const at::Tensor& seen) { after = seen[0]; });
  model.forward(some_tokens(config, 1, 9), {}, hooks);
  const at::Tensor found = branch.output(middle, branch.expert_weights(middle));
  EXPECT_LT((found - (after - middle)).abs().max().item<double>(), 1e-10);
}

TEST_P(EveryBranch, CarriesTheVarianceThatTheWholeJacobianGives) {
  const c10::InferenceMode inference;
  const DecoderConfig& config = GetParam().config;
  const FeedForwardBranch branch(config, 0, RandomWeights(7, at::kDouble).of(config).layers[0]);
  const at::Tensor stream = some_stream(5), variance = 0.1 + at::rand({5, 16}, at::kDouble);
  const at::Tensor whole = jacobian_by_differences(branch, stream) + at::eye(16, at::kDouble);
  const at::Tensor expected = at::matmul(whole.square(), variance.unsqueeze(2)).squeeze(2);
  const at::Tensor found = branch.carried(stream, variance);
  EXPECT_LT((found / expected - 1).abs().max().item<double>(), 1e-6);
  // The diagonal rule leaves out terms that are never below 0.
  const at::Tensor rule = (1 + branch.jacobian_diagonal(stream)).square() * variance;
  EXPECT_GT((found - rule).min().item<double>(), 0);
}

/// A plain layer without norms whose neurons are the coordinates: its Jacobian is diagonal.
TEST(FeedForwardBranch, CarriesByTheDiagonalRuleWhereTheLayerIsDiagonal) {
  const c10::InferenceMode inference;
  DecoderConfig config = small_config();
  config.pre_norm = config.gated_mlp = false;
  config.activation = models::Activation::relu;
  config.mlp_width = 16;
  models::LayerWeights weights = RandomWeights(7, at::kDouble).of(config).layers[0];
  const at::Tensor factors = at::linspace(-0.5, 2, 16, at::kDouble);
  weights.mlp_up = at::eye(16, at::kDouble);
  weights.mlp_down = at::diag(factors);
  const FeedForwardBranch branch(config, 0, weights);
  const at::Tensor stream = 1 + some_stream(3).abs(), variance = 0.1 + at::rand({3, 16}, at::kDouble);
  EXPECT_LT((branch.jacobian_diagonal(stream) - factors).abs().max().item<double>(), 1e-12);
  EXPECT_LT((branch.carried(stream, variance) - (1 + factors).square() * variance).abs().max().item<double>(), 1e-12);
}

}  // namespace feedforward_branch_test
}  // namespace gainlens::depth
