// The parts of a logit difference, for every option of a decoder.
#include "look/logit_parts.h"

#include "look/look_at_prompt.h"
#include "models/random_decoder.h"
#include "sweep/one_sequence.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace gainlens::look {
namespace logit_parts_test {

using gainlens::testing::NamedConfig;
using gainlens::testing::random_decoder;

Prompt some_prompt(std::int64_t length = 24) {
  Prompt prompt;
  for (std::int64_t i = 0; i < length; ++i)
    prompt.tokens.push_back(static_cast<tokenizers::TokenId>((i * 17 + i * i / 7) % 50));
  return prompt;
}

LogitParts parts_of(models::Decoder& model) {
  LookOptions options;
  options.pair = interventions::AnswerPair{11, 30};
  return *look_at(model, some_prompt(), options).parts;
}

class PartsOfEveryOption : public ::testing::TestWithParam<NamedConfig> {};

TEST_P(PartsOfEveryOption, TheyHaveItsSum) {
  for (const auto& [dtype, tolerance] : {std::pair{at::kDouble, 1e-10}, std::pair{at::kFloat, 1e-4}}) {
    models::Decoder model = random_decoder(GetParam().config, dtype);
    const LogitParts found = parts_of(model);
    EXPECT_NEAR(found.sum, found.linear, tolerance);
    double sum = 0;
    for (const LogitPart& part : found.parts) sum += part.value;
    EXPECT_DOUBLE_EQ(sum, found.sum);
    if (model.config().logit_soft_cap == 0) {
      EXPECT_NEAR(found.linear, found.difference, tolerance);
    }
    EXPECT_GT(std::abs(found.difference), 1e-3);
  }
}

/// What a part says, by an experiment: the last position's stream without it, read at the divisor of the whole.
TEST_P(PartsOfEveryOption, AHeadsPartIsWhatItsResultIsWorth) {
  const models::DecoderConfig& config = GetParam().config;
  if (config.post_norm) return;  // then its result is not what is added to the stream
  models::Decoder model = random_decoder(config);
  const LogitParts found = parts_of(model);
  const std::int64_t layer = config.layers - 1;
  if (!config.attends(layer)) return;
  hooks::Hooks hooks;
  at::Tensor result, last;
  hooks.observe(hooks::block_site(layer, "attn.hook_result"),
                [&](const hooks::Site&, const at::Tensor& seen) { result = seen[0][-1].clone(); });
  hooks.observe(hooks::block_site(layer, "hook_resid_post"),
                [&](const hooks::Site&, const at::Tensor& seen) { last = seen[0][-1].clone(); });
  const c10::InferenceMode inference;
  model.forward(sweep::one_sequence(some_prompt().tokens), {}, hooks);
  // n(x) = x / divisor(x): a stream scaled so that its divisor is that of the whole gives the linear part alone.
  const auto output = model.output_rows(at::tensor({11, 30}, at::kLong));
  const at::Tensor direction = (output.rows[0] - output.rows[1]) * output.norm_weight;
  const bool centred = config.norm == models::Norm::layer;
  const auto spread = [&](const at::Tensor& x) { return centred ? x - x.mean() : x; };
  const double divisor = std::sqrt(spread(last).square().mean().item<double>() + config.norm_epsilon);
  for (std::int64_t head = 0; head < config.heads; ++head) {
    const at::Tensor without = last - result[head] * config.residual_scale;
    const double expected = direction.dot(spread(last) - spread(without)).item<double>() / divisor;
    const std::string name = fmt::format("blocks.{}.attn[head={}]", layer, head);
    const auto part =
        std::find_if(found.parts.begin(), found.parts.end(), [&](const LogitPart& one) { return one.name == name; });
    ASSERT_NE(part, found.parts.end()) << name;
    EXPECT_NEAR(part->value, expected, 1e-10) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Decoders, PartsOfEveryOption, ::testing::ValuesIn(gainlens::testing::every_option()),
                         [](const auto& test) { return test.param.name; });

TEST(LogitParts, ANormBehindHeadsAndABiasLeavesThemTogether) {
  models::DecoderConfig config = gainlens::testing::small_config();
  config.post_norm = config.output_bias = true;
  models::Decoder model = random_decoder(config);
  const LogitParts found = parts_of(model);
  EXPECT_NEAR(found.sum, found.difference, 1e-10);
  EXPECT_EQ(found.divided, "a norm after attention divides its heads and a bias together");
  ASSERT_EQ(found.parts.size(), 5u);
  EXPECT_EQ(found.parts[1].name, "blocks.0.attn");
  EXPECT_EQ(found.parts[4].name, "blocks.1.mlp");
}

}  // namespace logit_parts_test
}  // namespace gainlens::look
