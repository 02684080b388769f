// A pass that is continued from a stored stream has the bits of a whole one.
#include "models/random_decoder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace gainlens::models {
namespace forward_from_test {

using gainlens::testing::every_option;
using gainlens::testing::NamedConfig;
using gainlens::testing::RandomWeights;
using gainlens::testing::some_tokens;

/// A filter's precision is not in the stream.
std::vector<NamedConfig> options_without_filter() {
  std::vector<NamedConfig> all = every_option();
  std::erase_if(all, [](const NamedConfig& named) { return named.config.filter.has_value(); });
  return all;
}

class ForwardFrom : public ::testing::TestWithParam<NamedConfig> {};

TEST_P(ForwardFrom, EqualsAWholePassWithTheSameHook) {
  const DecoderConfig& config = GetParam().config;
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    Decoder model(config, RandomWeights(3, dtype).of(config));
    const hooks::Tokens tokens = some_tokens(config, 1, 21);
    std::vector<at::Tensor> before(static_cast<std::size_t>(config.layers));
    hooks::Hooks watch;
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      watch.observe(hooks::block_site(layer, "hook_resid_pre"), [&before, layer](const auto&, const at::Tensor& seen) {
        before[static_cast<std::size_t>(layer)] = seen;
      });
    }
    const at::Tensor native = model.forward(tokens, {}, watch).hidden;
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      hooks::Hooks nothing, halved;
      halved.replace(hooks::Glob(hooks::block_site(layer, "hook_mlp_out").name),
                     [](const hooks::Site&, const at::Tensor& seen) { return seen * 0.5; });
      const std::vector<hooks::ForwardRequest> requests = {{&tokens, {}, &nothing}, {&tokens, {}, &halved}};
      const std::vector<hooks::Stream> streams =
          model.forward_from(layer, before[static_cast<std::size_t>(layer)], requests);
      EXPECT_TRUE(at::equal(streams[0].hidden, native));
      EXPECT_TRUE(at::equal(streams[1].hidden, model.forward(tokens, {}, halved).hidden));
      EXPECT_FALSE(at::equal(streams[1].hidden, native));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryOption, ForwardFrom, ::testing::ValuesIn(options_without_filter()),
                         [](const auto& tested) { return tested.param.name; });

TEST(ForwardFromTheEnd, RunsTheFinalNormAlone) {
  const DecoderConfig config = gainlens::testing::small_config();
  Decoder model(config, RandomWeights(4, at::kFloat).of(config));
  const hooks::Tokens tokens = some_tokens(config, 1, 5);
  const hooks::Hooks nothing;
  const hooks::ForwardRequest request{&tokens, {}, &nothing};
  hooks::ForwardOptions stopped;
  stopped.stop_at_layer = config.layers;
  const at::Tensor before = model.forward(tokens, stopped, nothing).hidden;
  EXPECT_TRUE(at::equal(model.forward_from(config.layers, before, {&request, 1}).front().hidden,
                        model.forward(tokens, {}, nothing).hidden));
}

TEST(ForwardFromTheEnd, RefusesAFilterAndAnotherShape) {
  DecoderConfig config = gainlens::testing::small_config();
  const hooks::Tokens tokens = some_tokens(config, 1, 5);
  const hooks::Hooks nothing;
  const hooks::ForwardRequest request{&tokens, {}, &nothing};
  Decoder plain(config, RandomWeights(4, at::kFloat).of(config));
  EXPECT_THROW(plain.forward_from(0, at::zeros({1, 4, config.width}), {&request, 1}), InternalError);
  config.filter = gainlens::testing::filter_for_tests();
  Decoder filtered(config, RandomWeights(4, at::kFloat).of(config));
  EXPECT_THROW(filtered.forward_from(0, at::zeros({1, 5, config.width}), {&request, 1}), InternalError);
}

}  // namespace forward_from_test
}  // namespace gainlens::models
