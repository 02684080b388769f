// One pass over a prompt, against the same pass with all weights in memory, for every option of a decoder.
#include "look/look_at_prompt.h"
#include "look/most_likely.h"

#include "core/error.h"
#include "models/checkpoint/load_decoder.h"
#include "models/decoder/attention_ops.h"
#include "models/random_decoder.h"
#include "sweep/one_sequence.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::look {
namespace look_at_prompt_test {

using gainlens::testing::NamedConfig;
using gainlens::testing::random_decoder;
using gainlens::testing::small_config;
using ::testing::HasSubstr;

const std::string models_folder = GAINLENS_SOURCE_DIR "/tests/golden/models/";

Prompt some_prompt(std::int64_t length = 24) {
  Prompt prompt;
  for (std::int64_t i = 0; i < length; ++i)
    prompt.tokens.push_back(static_cast<tokenizers::TokenId>((i * 17 + i * i / 7) % 50));
  return prompt;
}

/// Every weight of a pass: [head, query, key] float64 for each layer with softmax attention.
std::map<std::int64_t, at::Tensor> patterns_of(models::Decoder& model, const Prompt& prompt) {
  const c10::InferenceMode inference;
  std::map<std::int64_t, at::Tensor> patterns;
  hooks::Hooks hooks;
  for (std::int64_t layer = 0; layer < model.config().layers; ++layer) {
    if (!model.config().attends(layer)) continue;
    hooks.observe(hooks::block_site(layer, "attn.hook_pattern"),
                  [&patterns, layer](const hooks::Site&, const at::Tensor& seen) {
                    patterns[layer] = seen[0].to(at::kDouble).clone();
                  });
  }
  model.forward(sweep::one_sequence(prompt.tokens), {}, hooks);
  return patterns;
}

/// How many keys a query of a layer sees.
std::int64_t visible(const models::DecoderConfig& config, std::int64_t layer, std::int64_t query) {
  const std::int64_t window = config.window[static_cast<std::size_t>(layer)];
  return window == 0 ? query + 1 : std::min(window, query + 1);
}

class LookOfEveryOption : public ::testing::TestWithParam<NamedConfig> {};

TEST_P(LookOfEveryOption, KeysAndMeansAreThoseOfAllWeights) {
  const models::DecoderConfig& config = GetParam().config;
  models::Decoder model = random_decoder(config);
  const Prompt prompt = some_prompt();
  const std::int64_t length = std::ssize(prompt.tokens), last = config.layers - 1;
  LookOptions options;
  options.top_keys = 3;
  options.segments = {{"a", 0, 5}, {"b", 5, length}};
  options.segment_queries = 4;
  options.query = ChosenQuery{last, config.heads - 1, length - 3};
  const PromptLook found = look_at(model, prompt, options);
  const auto patterns = patterns_of(model, prompt);
  ASSERT_EQ(std::ssize(found.heads), config.heads * std::ssize(patterns));
  for (const LookedHead& head : found.heads) {
    const at::Tensor weights = patterns.at(head.layer)[head.head];
    for (std::int64_t query = 0; query < length; ++query) {
      const auto [expected, keys] = at::sort(weights[query], /*stable=*/true, 0, /*descending=*/true);
      for (std::int64_t rank = 0; rank < 3; ++rank) {
        const auto at = static_cast<std::size_t>(query * 3 + rank);
        if (rank >= visible(config, head.layer, query)) {
          EXPECT_EQ(head.top_keys[at], -1);
          continue;
        }
        EXPECT_EQ(head.top_keys[at], keys[rank].item<std::int64_t>());
        EXPECT_NEAR(head.top_weights[at], expected[rank].item<double>(), 1e-6);
      }
      EXPECT_NEAR(head.bos_mass[static_cast<std::size_t>(query)], weights[query][0].item<double>(), 1e-6);
    }
    for (std::int64_t key = 0; key < length; ++key) {
      std::int64_t queries = 0;
      for (std::int64_t query = key; query < length; ++query)
        queries += static_cast<std::int64_t>(query - key < visible(config, head.layer, query));
      const double sum = weights.select(1, key).sum().item<double>();
      EXPECT_NEAR(head.key_mean[static_cast<std::size_t>(key)], sum / static_cast<double>(queries), 1e-6);
      EXPECT_NEAR(head.column_mean[static_cast<std::size_t>(key)], sum / static_cast<double>(length - key), 1e-6);
    }
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_NEAR(head.segment_mass[i],
                  weights.slice(0, length - 4)
                      .slice(1, options.segments[i].begin, options.segments[i].end)
                      .sum(1)
                      .mean()
                      .item<double>(),
                  1e-6);
  }
  ASSERT_TRUE(found.query);
  EXPECT_EQ(found.query->layer, last);
  const at::Tensor chosen = patterns.at(last)[config.heads - 1][length - 3];
  EXPECT_LT((at::tensor(found.query->weights, at::kDouble) - chosen).abs().max().item<double>(), 1e-9);
}

std::vector<double> doubles(const at::Tensor& row) {
  const at::Tensor plain = row.to(at::kDouble).contiguous();
  return {plain.const_data_ptr<double>(), plain.const_data_ptr<double>() + plain.numel()};
}

/// The numbers of a sweep's queries are those of StatisticsAttention with its usual fields.
TEST_P(LookOfEveryOption, StatisticsAreThoseOfASweep) {
  models::Decoder model = random_decoder(GetParam().config, at::kFloat);
  const Prompt prompt = some_prompt();
  const PromptLook found = look_at(model, prompt, {});
  std::size_t next = 0;
  models::StatisticsAttention statistics([&](std::int64_t layer, kernels::QueryStatistics&& seen) {
    for (std::int64_t head = 0; head < seen.n_eff.size(0); ++head) {
      const LookedHead& looked = found.heads.at(next++);
      EXPECT_EQ(looked.layer, layer);
      EXPECT_EQ(looked.head, head);
      for (const auto& [values, expected] : {std::pair{&looked.n_eff, seen.n_eff[head]},
                                             {&looked.kalman_gain, seen.kalman_gain[head]},
                                             {&looked.entropy, seen.entropy[head]},
                                             {&looked.bos_mass, seen.first_mass[head].select(1, 0)}})
        EXPECT_THAT(std::vector<double>(values->begin(), values->end()),
                    ::testing::Pointwise(::testing::NanSensitiveDoubleNear(1e-6), doubles(expected)));
    }
  });
  const c10::InferenceMode inference;
  hooks::ForwardOptions forward;
  forward.attention = &statistics;
  const at::Tensor hidden = model.forward(sweep::one_sequence(prompt.tokens), forward, {}).hidden;
  EXPECT_EQ(next, found.heads.size());
  const at::Tensor logits = model.unembed(hidden[0].slice(0, hidden.size(1) - 1))[0];
  for (const NextToken& token : found.next) EXPECT_NEAR(token.logit, logits[token.id].item<double>(), 1e-5);
}

TEST_P(LookOfEveryOption, TheLensEndsAtTheLogits) {
  models::Decoder model = random_decoder(GetParam().config);
  LookOptions options;
  options.lens = LensOptions{.next = 4};
  options.next = 4;
  const PromptLook found = look_at(model, some_prompt(), options);
  ASSERT_EQ(std::ssize(found.lens), GetParam().config.layers * std::ssize(found.tokens));
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(found.lens.back().next[rank].id, found.next[rank].id);
    EXPECT_NEAR(found.lens.back().next[rank].logit, found.next[rank].logit, 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(Decoders, LookOfEveryOption, ::testing::ValuesIn(gainlens::testing::every_option()),
                         [](const auto& test) { return test.param.name; });

TEST(LookAtPrompt, WeightsOfAQuerySumToOne) {
  models::DecoderConfig config = small_config();
  config.window = {5, 0};
  models::Decoder model = random_decoder(config, at::kFloat);
  for (const std::int64_t layer : {0, 1}) {
    LookOptions options;
    options.query = ChosenQuery{layer, 2, 17};
    const PromptLook found = look_at(model, some_prompt(), options);
    double sum = 0;
    for (const double weight : found.query->weights) sum += weight;
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_EQ(std::ssize(found.query->weights), 24);
    EXPECT_EQ(found.query->weights[12] > 0, layer == 1);  // beyond the window of layer 0
    EXPECT_GT(found.query->weights[13], 0);
    EXPECT_EQ(found.query->weights[18], 0);
  }
  EXPECT_EQ(look_at(model, some_prompt(), {}).windows, config.window);
}

TEST(LookAtPrompt, OneTokenIsAPrompt) {
  models::Decoder model = random_decoder(small_config(), at::kFloat);
  LookOptions options;
  options.lens.emplace();
  options.pair = interventions::AnswerPair{1, 2};
  options.query = ChosenQuery{0, 0, 0};
  options.segments = {{"all", 0, 1}};
  const PromptLook found = look_at(model, some_prompt(1), options);
  EXPECT_EQ(found.query->weights, std::vector<double>{1});
  EXPECT_EQ(found.heads[0].n_eff, std::vector<float>{1});
  EXPECT_EQ(found.heads[0].column_mean, std::vector<float>{1});
  EXPECT_EQ(found.heads[0].segment_mass, std::vector<double>{1});
  EXPECT_NEAR(found.parts->sum, found.parts->difference, 1e-5);
}

TEST(LookAtPrompt, ProbabilitiesAreOfTheWholeVocabulary) {
  models::Decoder model = random_decoder(small_config(), at::kFloat);
  LookOptions options;
  options.next = 1000;
  const PromptLook found = look_at(model, some_prompt(), options);
  ASSERT_EQ(found.next.size(), 50u);
  double sum = 0;
  for (std::size_t i = 0; i < 50; ++i) {
    sum += found.next[i].probability;
    EXPECT_GE(found.next[i == 0 ? 0 : i - 1].logit, found.next[i].logit);
  }
  EXPECT_NEAR(sum, 1, 1e-12);
}

void expect_equal(const PromptLook& a, const PromptLook& b) {
  ASSERT_EQ(a.heads.size(), b.heads.size());
  for (std::size_t i = 0; i < a.heads.size(); ++i) {
    EXPECT_EQ(a.heads[i].n_eff, b.heads[i].n_eff);
    EXPECT_EQ(a.heads[i].top_keys, b.heads[i].top_keys);
    EXPECT_EQ(a.heads[i].column_mean, b.heads[i].column_mean);
  }
  for (std::size_t i = 0; i < a.next.size(); ++i) EXPECT_EQ(a.next[i].logit, b.next[i].logit);
  ASSERT_EQ(a.parts->parts.size(), b.parts->parts.size());
  for (std::size_t i = 0; i < a.parts->parts.size(); ++i) EXPECT_EQ(a.parts->parts[i].value, b.parts->parts[i].value);
  for (std::size_t i = 0; i < a.lens.size(); ++i) EXPECT_EQ(a.lens[i].next[0].logit, b.lens[i].next[0].logit);
}

PromptLook whole_look(const std::string& path, const models::LoadOptions& load) {
  LookOptions options;
  options.lens.emplace();
  options.pair = interventions::AnswerPair{11, 30};
  return look_at(*models::load_own_decoder(path, load), some_prompt(), options);
}

TEST(LookAtPrompt, StreamedWeightsGiveTheSameBits) {
  for (const char* name : {"llama", "gemma2", "gpt-oss", "qwen3-next"}) {
    models::LoadOptions kept, streamed;
    kept.dtype = streamed.dtype = at::kFloat;
    streamed.stream = true;
    expect_equal(whole_look(models_folder + name, kept), whole_look(models_folder + name, streamed));
  }
}

TEST(LookAtPrompt, OfEqualTokensTheFirstComesFirst) {
  const at::Tensor logits = at::tensor({1.0, 3.0, 2.0, 3.0, 2.0, 2.0});
  std::vector<std::int32_t> ids;
  for (const NextToken& token : most_likely(logits, 4, nullptr)) ids.push_back(token.id);
  EXPECT_EQ(ids, (std::vector<std::int32_t>{1, 3, 2, 4}));
  EXPECT_EQ(most_likely(logits, 100, nullptr).size(), 6u);
}

TEST(LookAtPrompt, Bfloat16IsNear) {
  models::LoadOptions wide, narrow;
  wide.dtype = at::kFloat;
  narrow.dtype = at::kBFloat16;
  for (const char* name : {"llama", "gemma2", "gpt-oss"}) {
    const PromptLook exact = whole_look(models_folder + name, wide), found = whole_look(models_folder + name, narrow);
    for (std::size_t i = 0; i < exact.heads.size(); ++i)
      EXPECT_NEAR(found.heads[i].n_eff.back(), exact.heads[i].n_eff.back(), 0.1 * exact.heads[i].n_eff.back()) << name;
    EXPECT_NEAR(found.parts->sum, exact.parts->sum, 0.1) << name;
    EXPECT_NEAR(found.parts->sum, found.parts->linear, 0.1) << name;
  }
}

TEST(LookAtPrompt, AGgufFileIsItsTwin) {
  models::LoadOptions load;
  load.dtype = at::kFloat;
  const PromptLook found = whole_look(GAINLENS_SOURCE_DIR "/tests/golden/gguf/llama.gguf", load);
  EXPECT_EQ(std::ssize(found.heads), 12);
  EXPECT_NEAR(found.parts->sum, found.parts->difference, 1e-4);
}

std::string refusal(const models::DecoderConfig& config, const Prompt& prompt, const LookOptions& options) {
  try {
    check_can_look(config, prompt, options);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(LookAtPrompt, WhatIsNotThereIsNamed) {
  models::DecoderConfig config = small_config();
  config.max_positions = 20;
  LookOptions options;
  EXPECT_THAT(refusal(config, some_prompt(21), options), HasSubstr("21 tokens, and the model was made for 20"));
  EXPECT_EQ(refusal(config, some_prompt(20), options), "");
  options.allow_extrapolation = true;
  EXPECT_EQ(refusal(config, some_prompt(21), options), "");
  const auto chosen = [&](std::int64_t layer, std::int64_t head, std::int64_t query) {
    options.query = ChosenQuery{layer, head, query};
    return refusal(config, some_prompt(10), options);
  };
  EXPECT_EQ(chosen(1, 3, 9), "");
  EXPECT_THAT(chosen(2, 0, 0), HasSubstr("--head: layer 2; the model has layers 0 to 1"));
  EXPECT_THAT(chosen(-1, 0, 0), HasSubstr("--head: layer -1"));
  EXPECT_THAT(chosen(0, 4, 0), HasSubstr("--head: head 4; the model has heads 0 to 3"));
  EXPECT_THAT(chosen(0, 0, 10), HasSubstr("--query: position 10; the prompt has positions 0 to 9"));
  config.delta = {.layers = {true, false}, .key_heads = 2, .value_heads = 4, .key_dim = 6, .value_dim = 5, .kernel = 3};
  EXPECT_THAT(chosen(0, 0, 0), HasSubstr("layer 0 has linear attention"));
  config.delta.layers = {true, true};
  options.query.reset();
  EXPECT_THAT(refusal(config, some_prompt(10), options), HasSubstr("no softmax attention"));
}

TEST(LookAtPrompt, BeyondItsPositionsIsSaid) {
  models::DecoderConfig config = small_config();
  config.max_positions = 20;
  models::Decoder model = random_decoder(config, at::kFloat);
  LookOptions options;
  options.allow_extrapolation = true;
  EXPECT_EQ(look_at(model, some_prompt(24), options).trained_for, 20);
  EXPECT_FALSE(look_at(model, some_prompt(20), options).trained_for);
}

}  // namespace look_at_prompt_test
}  // namespace gainlens::look
