#include "generation/generate.h"

#include "golden/golden.h"
#include "look/look_at_prompt.h"
#include "models/checkpoint/load_decoder.h"
#include "models/random_decoder.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace gainlens::generation {
namespace generate_test {

using gainlens::testing::random_decoder;
using gainlens::testing::small_config;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Ids = std::vector<tokenizers::TokenId>;

/// The oracle: a whole forward pass for every token.
Continued without_cache(models::Decoder& model, Ids text, std::int64_t max_new) {
  const c10::InferenceMode inference;
  Continued found;
  for (std::int64_t i = 0; i < max_new; ++i) {
    const at::Tensor ids = at::tensor(std::vector<std::int64_t>(text.begin(), text.end()), at::kLong).unsqueeze(0);
    const at::Tensor last = model.forward({ids}, {}, {}).hidden[0];
    const at::Tensor logits = model.unembed(last.slice(0, last.size(0) - 1))[0].to(at::kDouble);
    const auto best = logits.argmax().item<std::int64_t>();
    found.tokens.push_back(static_cast<tokenizers::TokenId>(best));
    found.log_probabilities.push_back(at::log_softmax(logits, -1)[best].item<double>());
    text.push_back(found.tokens.back());
  }
  return found;
}

void expect_same(const Continued& found, const Continued& expected, double tolerance) {
  EXPECT_EQ(found.tokens, expected.tokens);
  ASSERT_EQ(found.log_probabilities.size(), expected.log_probabilities.size());
  for (std::size_t i = 0; i < expected.log_probabilities.size(); ++i)
    EXPECT_NEAR(found.log_probabilities[i], expected.log_probabilities[i], tolerance) << "token " << i;
}

/// Ids from the start of what the golden's reference read.
Ids begin_of(const golden::Golden& golden, std::int64_t count) {
  const at::Tensor start = golden.tokens.slice(0, 0, count).contiguous();
  const std::int64_t* const data = start.const_data_ptr<std::int64_t>();
  return {data, data + start.numel()};
}

class EveryGolden : public ::testing::TestWithParam<std::string> {};

/// Three prompts together, each against a pass without a cache for every token.
TEST_P(EveryGolden, ContinuesAsWithoutACache) {
  const golden::Golden golden = golden::read_golden(GetParam());
  if (!golden.checkpoint) GTEST_SKIP() << "SKIPPED: shared data models/" << golden.name << " is absent";
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    models::LoadOptions load;
    load.dtype = dtype;
    const auto model = models::load_own_decoder(*golden.checkpoint, load);
    constexpr std::int64_t max_new = 20;
    const std::int64_t most = std::min(model->config().max_positions - max_new, golden.tokens.size(0));
    const std::vector<Ids> prompts = {begin_of(golden, most), begin_of(golden, 1), begin_of(golden, most / 2)};
    const Generated found = generate(*model, prompts, {.max_new = max_new});
    ASSERT_EQ(found.continued.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      SCOPED_TRACE(std::string(dtype == at::kDouble ? "float64" : "float32") + ", prompt " + std::to_string(i));
      expect_same(found.continued[i], without_cache(*model, prompts[i], max_new), dtype == at::kDouble ? 1e-11 : 1e-4);
    }
    EXPECT_EQ(found.prompt_tokens, most + 1 + most / 2);
    EXPECT_EQ(found.step_tokens, 3 * (max_new - 1));
  }
}

/// What generation tells of each new token is what `look` tells of this position of the finished text. Where longrope
/// changes its rotations within it, of the text up to there.
TEST_P(EveryGolden, StatisticsAreThoseOfTheWholeText) {
  const golden::Golden golden = golden::read_golden(GetParam());
  if (!golden.checkpoint) GTEST_SKIP() << "SKIPPED: shared data models/" << golden.name << " is absent";
  const bool changes = golden.name.find("longrope-long") != std::string::npos;
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    models::LoadOptions load;
    load.dtype = dtype;
    const auto model = models::load_own_decoder(*golden.checkpoint, load);
    constexpr std::int64_t max_new = 6;
    const std::int64_t length = std::min(model->config().max_positions - max_new, golden.tokens.size(0)) / 2 + 1;
    const std::vector<Ids> prompts = {begin_of(golden, length)};
    const Continued found = generate(*model, prompts, {.max_new = max_new, .statistics = true}).continued[0];
    EXPECT_EQ(found.tokens, generate(*model, prompts, {.max_new = max_new}).continued[0].tokens);
    const auto looked_at = [&](std::int64_t added) {
      look::Prompt text{prompts[0], {}, nullptr, {}};
      text.tokens.insert(text.tokens.end(), found.tokens.begin(), found.tokens.begin() + added);
      return look::look_at(*model, text, {.top_keys = 1});
    };
    const PromptLook whole = looked_at(max_new - 1);
    // Numbers of heads are kept as float32.
    const double tolerance = dtype == at::kDouble ? 1e-6 : 2e-4;
    for (std::int64_t i = 0; i < max_new; ++i) {
      const PromptLook looked = changes ? looked_at(i) : whole;
      ASSERT_EQ(found.heads.size(), looked.heads.size());
      for (std::size_t at = 0; at < found.heads.size(); ++at) {
        const HeadQueries& head = found.heads[at];
        SCOPED_TRACE(fmt::format("{}, head {}.{}, token {}", dtype == at::kDouble ? "float64" : "float32", head.layer,
                                 head.head, i));
        EXPECT_EQ(head.layer, looked.heads[at].layer);
        EXPECT_EQ(head.head, looked.heads[at].head);
        for (const auto numbers :
             {&HeadQueries::n_eff, &HeadQueries::kalman_gain, &HeadQueries::entropy, &HeadQueries::bos_mass}) {
          ASSERT_EQ(std::ssize(head.*numbers), max_new);
          const double expected = (looked.heads[at].*numbers).at(static_cast<std::size_t>(length - 1 + i));
          EXPECT_NEAR((head.*numbers)[static_cast<std::size_t>(i)], expected,
                      tolerance * std::max(1.0, std::abs(expected)));
        }
      }
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& letter : name) {
    if (letter == '-' || letter == '.') letter = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Families, EveryGolden, ::testing::ValuesIn(golden::golden_names()), name_of);

TEST(Generate, EndsBehindAnEndAndAtTheMost) {
  models::Decoder model = random_decoder(small_config());
  const std::vector<Ids> prompts = {{3, 14, 15}, {9, 2}};
  const Generated all = generate(model, prompts, {.max_new = 12});
  const tokenizers::TokenId end = all.continued[0].tokens[4];
  const Generated found = generate(model, prompts, {.max_new = 12, .ends = {end}});
  for (std::size_t i = 0; i < 2; ++i) {
    const Ids& whole = all.continued[i].tokens;
    const auto first = std::find(whole.begin(), whole.end(), end);
    const bool ends = first != whole.end();
    EXPECT_EQ(found.continued[i].tokens, Ids(whole.begin(), ends ? first + 1 : first));
    EXPECT_EQ(found.continued[i].ended, ends);
    EXPECT_FALSE(all.continued[i].ended);
  }
  EXPECT_EQ(generate(model, prompts, {.max_new = 1}).continued[1].tokens.size(), 1u);
}

TEST(Generate, ASeedGivesTheSameTextsAlways) {
  models::Decoder model = random_decoder(small_config());
  const std::vector<Ids> prompts = {{3, 14, 15}, {3, 14, 15}};
  const GenerationOptions options{.max_new = 20, .sampling = Sampling{.temperature = 2}, .seed = 5};
  const Generated found = generate(model, prompts, options);
  EXPECT_NE(found.continued[0].tokens, found.continued[1].tokens);  // each prompt has draws of its own
  EXPECT_EQ(generate(model, std::span(prompts).first(1), options).continued[0].tokens, found.continued[0].tokens);
  GenerationOptions other = options;
  other.seed = 6;
  EXPECT_NE(generate(model, prompts, other).continued[0].tokens, found.continued[0].tokens);
}

TEST(Generate, WhatCannotBeContinuedIsRefused) {
  models::DecoderConfig config = small_config();
  config.max_positions = 8;
  const auto refused = [&](const std::vector<Ids>& prompts, const GenerationOptions& options, const char* reason) {
    EXPECT_THAT([&] { check_can_generate(config, prompts, options); },
                ThrowsMessage<InvalidArgument>(HasSubstr(reason)));
  };
  refused({{1, 2}}, {.max_new = 0}, "--max-new: 0; must be at least 1");
  refused({{1, 2}}, {.max_new = -3}, "--max-new: -3");
  refused({}, {.max_new = 1}, "there is no prompt");
  refused({{1}, {}}, {.max_new = 1}, "the prompt holds no token");
  refused({{1, 50}}, {.max_new = 1}, "id 50 at position 1; the vocabulary has 50 ids, 0 to 49");
  refused({{1, -1}}, {.max_new = 1}, "id -1 at position 1");
  refused({{1, 2, 3}}, {.max_new = 6},
          "the prompt has 3 tokens and --max-new asks for 6 more; the model was made for 8");
  refused({{1}}, {.max_new = std::numeric_limits<std::int64_t>::max()}, "or give --allow-extrapolation");
  refused({{1}}, {.max_new = 1, .sampling = Sampling{.top_p = 0}}, "--top-p: 0");
  check_can_generate(config, std::vector<Ids>{{1, 2, 3}}, {.max_new = 5});
  check_can_generate(config, std::vector<Ids>{{1, 2, 3}}, {.max_new = 50, .allow_extrapolation = true});
  config.positions = models::Positions::learned;
  refused({{1, 2, 3}}, {.max_new = 6, .allow_extrapolation = true}, "no vector for a later position");
}

TEST(Generate, GoesBeyondThePositionsIfAsked) {
  models::DecoderConfig config = small_config();
  config.max_positions = 8;
  models::Decoder model = random_decoder(config), longer = random_decoder(small_config());
  const std::vector<Ids> prompts = {{1, 2, 3}};
  const Generated found = generate(model, prompts, {.max_new = 30, .allow_extrapolation = true});
  EXPECT_EQ(found.continued[0].tokens, generate(longer, prompts, {.max_new = 30}).continued[0].tokens);
}

TEST(Generate, LogitsThatAreNoNumbersAreAnError) {
  const models::DecoderConfig config = small_config();
  models::DecoderWeights weights = gainlens::testing::RandomWeights(1, at::kDouble).of(config);
  weights.head[3][0] = std::numeric_limits<double>::quiet_NaN();
  models::Decoder model(config, std::move(weights));
  EXPECT_THAT(
      [&] {
        generate(model, std::vector<Ids>{{1, 2}}, {.max_new = 2});
      },
      ThrowsMessage<RunFailed>(HasSubstr("the logits are NaN or infinite")));
}

}  // namespace generate_test
}  // namespace gainlens::generation
