// The tensors that a decoder shows at its sites, and the effect of interventions there.
#include "core/error.h"
#include "models/decoder/attention_ops.h"
#include "models/materialised_attention.h"
#include "models/printed_gate.h"
#include "models/random_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace gainlens::models {
namespace decoder_sites_test {

using gainlens::testing::every_option;
using gainlens::testing::logits;
using gainlens::testing::NamedConfig;
using gainlens::testing::random_decoder;
using gainlens::testing::RandomWeights;
using gainlens::testing::small_config;
using gainlens::testing::some_tokens;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t batch = 2, positions = 12;

struct Seen {
  std::vector<std::string> order;
  std::map<std::string, at::Tensor> tensors;
};

Seen observe(Decoder& model, const hooks::Tokens& tokens, const std::string& glob = "*") {
  Seen seen;
  hooks::Hooks hooks;
  hooks.observe(hooks::Glob(glob), [&](const hooks::Site& site, const at::Tensor& tensor) {
    seen.order.push_back(site.name);
    seen.tensors[site.name] = tensor;
  });
  model.forward(tokens, {}, hooks);
  return seen;
}

at::Tensor logits_with(Decoder& model, const hooks::Tokens& tokens, const std::string& glob,
                       hooks::Intervention intervention) {
  hooks::Hooks hooks;
  hooks.replace(hooks::Glob(glob), std::move(intervention));
  return logits(model, tokens, {}, hooks);
}

std::vector<std::int64_t> sizes_of(const hooks::SiteShape& site) {
  std::vector<std::int64_t> sizes;
  for (const std::string& size : site.shape) {
    sizes.push_back(size == "batch" ? batch : size == "position" ? positions : std::stoll(size));
  }
  return sizes;
}

class Sites : public ::testing::TestWithParam<NamedConfig> {};

TEST_P(Sites, EachFiresOnceInOrderAndInItsShape) {
  Decoder model = random_decoder(GetParam().config);
  const Seen seen = observe(model, some_tokens(GetParam().config, batch, positions));
  std::vector<std::string> expected;
  for (const hooks::SiteShape& site : model.sites()) {
    expected.push_back(site.site.name);
    ASSERT_TRUE(seen.tensors.contains(site.site.name)) << site.site.name;
    EXPECT_EQ(seen.tensors.at(site.site.name).sizes(), at::IntArrayRef(sizes_of(site))) << site.site.name;
  }
  EXPECT_EQ(seen.order, expected);
}

TEST_P(Sites, ObserversDoNotChangeABit) {
  Decoder model = random_decoder(GetParam().config, at::kFloat);
  const hooks::Tokens tokens = some_tokens(GetParam().config, batch, positions);
  UsualAttention fused;
  StatisticsAttention statistics([](auto, auto&&) {});
  hooks::Hooks hooks;
  hooks.observe(hooks::Glob("*"), [](const auto&, const auto&) {});
  for (hooks::AttentionOp* attention : std::initializer_list<hooks::AttentionOp*>{&fused, &statistics}) {
    EXPECT_TRUE(at::equal(logits(model, tokens, {.attention = attention}),
                          logits(model, tokens, {.attention = attention}, hooks)));
  }
}

TEST_P(Sites, InterventionsDoChangeTheLogits) {
  Decoder model = random_decoder(GetParam().config);
  const hooks::Tokens tokens = some_tokens(GetParam().config, batch, positions);
  const at::Tensor plain = logits(model, tokens);
  const auto add_noise = [](const hooks::Site&, const at::Tensor& tensor) { return tensor + at::randn_like(tensor); };
  for (const hooks::SiteShape& site : model.sites()) {
    if (site.site == hooks::logits_site()) continue;  // cannot be replaced
    EXPECT_FALSE(at::allclose(logits_with(model, tokens, site.site.name, add_noise), plain, 1e-3, 1e-3))
        << site.site.name;
  }
}

TEST_P(Sites, ReplacingATensorByItselfChangesNoMoreThanRounding) {
  Decoder model = random_decoder(GetParam().config);
  const hooks::Tokens tokens = some_tokens(GetParam().config, batch, positions);
  const auto same = [](const hooks::Site&, const at::Tensor& tensor) { return tensor; };
  const std::string all_but_logits = "{hook_embed,hook_pos_embed,blocks.*,ln_final.*}";
  EXPECT_TRUE(at::allclose(logits_with(model, tokens, all_but_logits, same), logits(model, tokens), 1e-10, 1e-10));
}

TEST_P(Sites, LogitsAreThoseOfTheResult) {
  Decoder model = random_decoder(GetParam().config);
  const hooks::Tokens tokens = some_tokens(GetParam().config, batch, positions);
  EXPECT_TRUE(at::equal(observe(model, tokens).tensors.at("hook_logits"), logits(model, tokens)));
}

INSTANTIATE_TEST_SUITE_P(Decoder, Sites, ::testing::ValuesIn(every_option()),
                         [](const auto& param) { return param.param.name; });

TEST(Sites, OnlyRotaryModelsHaveRotatedQueriesAndKeys) {
  for (const Positions kind : {Positions::rotary, Positions::learned, Positions::alibi}) {
    DecoderConfig config = small_config();
    config.positions = kind;
    const auto sites = random_decoder(config).sites();
    const bool rotated = std::any_of(sites.begin(), sites.end(), [](const hooks::SiteShape& site) {
      return site.site.name.find("hook_rot_") != std::string::npos;
    });
    EXPECT_EQ(rotated, kind == Positions::rotary);
  }
}

TEST(Sites, HangTogether) {
  DecoderConfig config = small_config();
  config.norm_epsilon = 1e-30;
  Decoder model = random_decoder(config);
  auto [order, at] = observe(model, some_tokens(config, batch, positions), "{hook_embed,blocks.0.*}");
  const auto near = [](const at::Tensor& a, const at::Tensor& b) { return at::allclose(a, b, 1e-10, 1e-10); };
  EXPECT_TRUE(near(at["blocks.0.hook_resid_pre"], at["hook_embed"]));
  EXPECT_TRUE(near(at["blocks.0.hook_resid_mid"], at["blocks.0.hook_resid_pre"] + at["blocks.0.hook_attn_out"]));
  EXPECT_TRUE(near(at["blocks.0.hook_resid_post"], at["blocks.0.hook_resid_mid"] + at["blocks.0.hook_mlp_out"]));
  EXPECT_TRUE(
      near(at["blocks.0.mlp.hook_post"], at::silu(at["blocks.0.mlp.hook_pre"]) * at["blocks.0.mlp.hook_pre_linear"]));
  EXPECT_TRUE(near(at["blocks.0.attn.hook_result"].sum(2), at["blocks.0.hook_attn_out"]));
  EXPECT_TRUE(near(at["blocks.0.ln1.hook_normalized"].pow(2).mean(-1), at::ones({batch, positions}, at::kDouble)));
  EXPECT_TRUE(near(at["blocks.0.attn.hook_pattern"].sum(-1), at::ones({batch, 4, positions}, at::kDouble)));
  EXPECT_EQ(at["blocks.0.attn.hook_pattern"].triu(1).abs().max().item<double>(), 0);
  EXPECT_TRUE(at::equal(at["blocks.0.attn.hook_q"].select(1, 0),
                        at["blocks.0.attn.hook_rot_q"].select(1, 0)));  // position 0 is not rotated
  EXPECT_FALSE(near(at["blocks.0.attn.hook_k"].select(1, 5), at["blocks.0.attn.hook_rot_k"].select(1, 5)));
  // Head 3 reads kv head 1.
  const at::Tensor values = at["blocks.0.attn.hook_v"].select(2, 1);
  EXPECT_TRUE(
      near(at["blocks.0.attn.hook_pattern"].select(1, 3).matmul(values), at["blocks.0.attn.hook_z"].select(2, 3)));
}

class Gates : public ::testing::TestWithParam<Gate> {};

TEST_P(Gates, MultiplyTheOutputOfAttention) {
  DecoderConfig config = small_config();
  config.layers = 1;
  config.window = {0};
  config.gate = GetParam();
  const DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  const hooks::Tokens tokens = some_tokens(config, batch, positions);
  Decoder gated(config, weights);
  DecoderConfig plain_config = config;
  plain_config.gate = Gate::none;
  DecoderWeights plain_weights = weights;
  plain_weights.layers[0].gate_score = at::Tensor();
  Decoder plain(plain_config, plain_weights);
  const at::Tensor ungated = observe(plain, tokens).tensors.at("blocks.0.hook_attn_out");

  const auto attention_out = [&](double gate) {
    hooks::Hooks hooks;
    at::Tensor seen;
    hooks.replace(hooks::Glob("*hook_gate"),
                  [&](const auto&, const at::Tensor& tensor) { return at::full_like(tensor, gate); });
    hooks.observe(hooks::Glob("blocks.0.hook_attn_out"), [&](const auto&, const at::Tensor& tensor) { seen = tensor; });
    gated.forward(tokens, {}, hooks);
    return seen;
  };
  EXPECT_TRUE(at::equal(attention_out(1), ungated));
  EXPECT_EQ(attention_out(0).abs().max().item<double>(), 0);
  EXPECT_TRUE(at::allclose(attention_out(0.25), 0.25 * ungated, 1e-12, 1e-12));
}

TEST_P(Gates, AreSigmoidsOfTheirScore) {
  DecoderConfig config = small_config();
  config.gate = GetParam();
  config.qkv_bias = true;
  DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  weights.layers[0].gate_score = at::zeros_like(weights.layers[0].gate_score);
  weights.layers[0].gate_score_bias = at::full_like(weights.layers[0].gate_score_bias, std::log(3.0));
  Decoder model(config, weights);
  const at::Tensor gate = observe(model, some_tokens(config, batch, positions)).tensors.at("blocks.0.attn.hook_gate");
  EXPECT_TRUE(at::allclose(gate, at::full_like(gate, 0.75), 1e-14, 1e-14));
}

INSTANTIATE_TEST_SUITE_P(Decoder, Gates, ::testing::Values(Gate::headwise, Gate::elementwise),
                         [](const auto& param) { return param.param == Gate::headwise ? "headwise" : "elementwise"; });

/// Records the layers that ask it for attention.
class Recorder : public hooks::AttentionOp {
 public:
  at::Tensor run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) override {
    layers.push_back(layer);
    return MaterialisedAttention().run(layer, qkv, options);
  }
  std::vector<std::int64_t> layers;
};

TEST(Pattern, OnlyAnInterventionTakesTheLayerFromTheOperation) {
  const DecoderConfig config = small_config();
  Decoder model = random_decoder(config);
  const hooks::Tokens tokens = some_tokens(config, batch, positions);
  Recorder observed, replaced;
  hooks::Hooks hooks;
  hooks.observe(hooks::Glob("*hook_pattern"), [](const auto&, const auto&) {});
  model.forward(tokens, {.attention = &observed}, hooks);
  EXPECT_THAT(observed.layers, ElementsAre(0, 1));
  hooks.replace(hooks::Glob("blocks.1.attn.hook_pattern"),
                [](const auto&, const at::Tensor& pattern) { return pattern; });
  model.forward(tokens, {.attention = &replaced}, hooks);
  EXPECT_THAT(replaced.layers, ElementsAre(0));
}

TEST(Pattern, AnIdentityPatternMakesEachQueryCopyItsOwnValue) {
  const DecoderConfig config = small_config();
  Decoder model = random_decoder(config);
  hooks::Hooks hooks;
  std::map<std::string, at::Tensor> seen;
  hooks.replace(hooks::Glob("blocks.0.attn.hook_pattern"), [](const auto&, const at::Tensor& pattern) {
    return at::eye(pattern.size(-1), pattern.options()).expand(pattern.sizes());
  });
  hooks.observe(hooks::Glob("blocks.0.attn.hook_{v,z}"),
                [&](const hooks::Site& site, const at::Tensor& tensor) { seen[site.name] = tensor; });
  model.forward(some_tokens(config, batch, positions), {}, hooks);
  EXPECT_TRUE(at::equal(seen.at("blocks.0.attn.hook_z"), seen.at("blocks.0.attn.hook_v").repeat_interleave(2, 2)));
}

TEST(Pattern, AboveTheBoundItIsRefused) {
  const DecoderConfig config = small_config();
  Decoder model = random_decoder(config, at::kFloat);
  const hooks::Tokens tokens = some_tokens(config, 1, 256);  // 4 heads x 256 x 256 x 4 bytes = 1 MiB
  hooks::Hooks hooks;
  hooks.observe(hooks::Glob("blocks.1.attn.hook_pattern"), [](const auto&, const auto&) {});
  EXPECT_NO_THROW(model.forward(tokens, {.pattern_memory_bytes = 1 << 20}, hooks));
  EXPECT_NO_THROW(model.forward(tokens, {.stop_at_layer = 1, .pattern_memory_bytes = 1}, hooks));
  EXPECT_NO_THROW(model.forward(tokens, {.pattern_memory_bytes = 1}, {}));
  EXPECT_THAT(
      [&] { model.forward(tokens, {.pattern_memory_bytes = 512 << 10}, hooks); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("hook blocks.1.attn.hook_pattern: [1, 4, 256, 256]"),
                                           HasSubstr("1.0 MiB"), HasSubstr("512 KiB"), HasSubstr("--pattern-memory"))));
}

TEST(Logits, AboveTheBoundTheyAreRefused) {
  const DecoderConfig config = small_config();
  Decoder model = random_decoder(config, at::kFloat);
  const hooks::Tokens tokens = some_tokens(config, 1, 16);
  const auto bytes = static_cast<std::uint64_t>(16 * config.vocabulary * 4);
  hooks::Hooks hooks;
  hooks.observe(hooks::Glob("hook_logits"), [](const auto&, const auto&) {});
  EXPECT_NO_THROW(model.forward(tokens, {.pattern_memory_bytes = bytes}, hooks));
  EXPECT_NO_THROW(model.forward(tokens, {.stop_at_layer = 1, .pattern_memory_bytes = 1}, hooks));
  EXPECT_NO_THROW(model.forward(tokens, {.pattern_memory_bytes = 1}, {}));
  EXPECT_THAT([&] { model.forward(tokens, {.pattern_memory_bytes = bytes - 1}, hooks); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("hook hook_logits: [1, 16, "), HasSubstr("logits need "),
                                                   HasSubstr("--pattern-memory"))));
}

TEST(Logits, AreNotReplaced) {
  const DecoderConfig config = small_config();
  Decoder model = random_decoder(config);
  const auto same = [](const hooks::Site&, const at::Tensor& tensor) { return tensor; };
  EXPECT_THAT([&] { logits_with(model, some_tokens(config, 1, 4), "*", same); },
              ThrowsMessage<InvalidArgument>(HasSubstr("hook hook_logits: can be observed, not replaced")));
}

TEST(Sites, ReplacedResultsOfHeadsAreSummed) {
  DecoderConfig config = small_config();
  config.output_bias = true;
  DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  Decoder model(config, weights);
  hooks::Hooks hooks;
  at::Tensor out;
  hooks.replace(hooks::Glob("blocks.0.attn.hook_result"),
                [](const auto&, const at::Tensor& result) { return at::zeros_like(result); });
  hooks.observe(hooks::Glob("blocks.0.hook_attn_out"), [&](const auto&, const at::Tensor& tensor) { out = tensor; });
  model.forward(some_tokens(config, batch, positions), {}, hooks);
  EXPECT_TRUE(at::equal(out, weights.layers[0].output_bias.expand_as(out)));
}

TEST(Sites, AMisspeltHookNamesTheNearestSite) {
  const DecoderConfig config = small_config();
  Decoder model = random_decoder(config);
  hooks::Hooks hooks;
  hooks.observe(hooks::Glob("blocks.0.attn.hook_zz"), [](const auto&, const auto&) {});
  EXPECT_THAT([&] { model.forward(some_tokens(config, 1, 4), {}, hooks); },
              ThrowsMessage<InvalidArgument>(HasSubstr("did you mean 'blocks.0.attn.hook_z'?")));
}

}  // namespace decoder_sites_test
}  // namespace gainlens::models
