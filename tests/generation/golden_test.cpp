// Against tests/golden/generation.json: greedy decoding by the field's Python reference, in float64.
#include "core/json.h"
#include "generation/generate.h"
#include "models/checkpoint/load_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace gainlens::generation {
namespace golden_test {

class GenerationGolden : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(GenerationGolden, TokensAndProbabilitiesAreTheReferences) {
  const std::string folder = GAINLENS_SOURCE_DIR "/tests/golden/";
  const Json golden = read_json_file(folder + "generation.json");
  double worst = 0;
  std::size_t texts = 0, checkpoints = 0;
  for (const auto& [name, made] : golden.items()) {
    if (name == "versions") continue;
    SCOPED_TRACE(name);
    ++checkpoints;
    models::LoadOptions load;
    load.dtype = GetParam();
    const auto model = models::load_own_decoder(folder + "models/" + name, load);
    std::vector<std::vector<tokenizers::TokenId>> prompts;
    for (const Json& one : made) prompts.push_back(one.at("prompt").get<std::vector<tokenizers::TokenId>>());
    ASSERT_FALSE(prompts.empty());
    const auto max_new = static_cast<std::int64_t>(made.at(0).at("tokens").size());
    const Generated found = generate(*model, prompts, {.max_new = max_new});
    for (std::size_t i = 0; i < prompts.size(); ++i, ++texts) {
      EXPECT_EQ(Json(found.continued[i].tokens), made.at(i).at("tokens")) << "prompt " << i;
      for (std::size_t token = 0; token < found.continued[i].tokens.size(); ++token) {
        const double error =
            std::abs(found.continued[i].log_probabilities[token] - made.at(i).at("logprobs").at(token).get<double>());
        EXPECT_LT(error, GetParam() == at::kDouble ? 1e-8 : 2e-5) << "prompt " << i << ", token " << token;
        worst = std::max(worst, error);
      }
    }
  }
  EXPECT_GE(checkpoints, 11u);
  EXPECT_GE(texts, 55u);
  std::printf("largest error of ln p over %zu texts: %.3g\n", texts, worst);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, GenerationGolden, ::testing::Values(at::kFloat, at::kDouble),
                         [](const auto& tested) { return tested.param == at::kDouble ? "float64" : "float32"; });

}  // namespace golden_test
}  // namespace gainlens::generation
