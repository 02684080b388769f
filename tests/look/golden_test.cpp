// Against tests/golden/look.json: the field's Python reference, in float64.
#include "core/json.h"
#include "look/look_at_prompt.h"
#include "models/checkpoint/load_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace gainlens::look {
namespace golden_test {

class LookGolden : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void near(const Json& expected, double found, const std::string& where) {
    const double error = std::abs(found - expected.get<double>());
    EXPECT_LT(error, GetParam() == at::kDouble ? 1e-9 : 1e-5) << where;
    worst_ = std::max(worst_, error);
  }
  void near_lens(const Json& expected, double found, const std::string& where) {
    near(expected, found, where);
    worst_of_lens_ = std::max(worst_of_lens_, std::abs(found - expected.get<double>()));
  }
  /// A number that is kept as float32, whatever the dtype of the model.
  void near(const Json& expected, float found, const std::string& where) {
    const double error = std::abs(found - expected.get<double>());
    EXPECT_LT(error, GetParam() == at::kDouble ? 6e-8 : 1e-5) << where;
    worst_of_heads_ = std::max(worst_of_heads_, error);
  }

  void same_next(const Json& expected, const std::vector<NextToken>& found, const std::string& where) {
    ASSERT_EQ(found.size(), expected.at("ids").size()) << where;
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
      EXPECT_EQ(found[rank].id, expected.at("ids").at(rank)) << where;
      near(expected.at("logits").at(rank), found[rank].logit, where + ": logit");
      near(expected.at("probabilities").at(rank), found[rank].probability, where + ": probability");
    }
  }

  void same_keys(const Json& keys, const Json& weights, const LookedHead& head, std::int64_t most, std::size_t query,
                 const std::string& where) {
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(most); ++rank) {
      const std::size_t at = query * static_cast<std::size_t>(most) + rank;
      if (rank >= keys.size()) {
        EXPECT_EQ(head.top_keys[at], -1) << where;
        EXPECT_TRUE(std::isnan(head.top_weights[at])) << where;
        continue;
      }
      EXPECT_EQ(head.top_keys[at], keys.at(rank)) << where << ", rank " << rank;
      near(weights.at(rank), head.top_weights[at], where);
    }
  }

  void same_heads(const Json& golden, const PromptLook& found, const std::string& name) {
    std::size_t count = 0;
    for (const auto& [layer, expected] : golden.items()) count += expected.at("column_mean").size();
    ASSERT_EQ(found.heads.size(), count) << name;
    for (const LookedHead& head : found.heads) {
      const Json& expected = golden.at(std::to_string(head.layer));
      const std::string where = name + ": head " + std::to_string(head.layer) + "." + std::to_string(head.head);
      for (std::size_t query = 0; query < found.tokens.size(); ++query) {
        same_keys(expected.at("top_keys").at(head.head).at(query), expected.at("top_weights").at(head.head).at(query),
                  head, found.top_count, query, where + ", query " + std::to_string(query));
        near(expected.at("column_mean").at(head.head).at(query), head.column_mean[query], where + ": column mean");
      }
    }
  }

  void same_lens(const Json& golden, const PromptLook& found, const std::string& name) {
    const std::size_t layers = golden.size(), positions = found.tokens.size();
    ASSERT_EQ(found.lens.size(), layers * positions) << name;
    for (std::size_t i = 0; i < found.lens.size(); ++i) {
      const LensRow& row = found.lens[i];
      const std::size_t position = i / layers, layer = i % layers;
      const std::string where = name + ": lens " + std::to_string(layer) + " at " + std::to_string(position);
      EXPECT_EQ(row.position, static_cast<std::int64_t>(position)) << where;
      EXPECT_EQ(row.layer, static_cast<std::int64_t>(layer)) << where;
      const Json& expected = golden.at(layer);
      if (position + 1 == positions) same_next(expected, row.next, where);
      near_lens(expected.at("entropy").at(position), row.entropy, where + ": entropy");
      near_lens(expected.at("kl").at(position), row.kl_to_last, where + ": divergence");
      near_lens(expected.at("logit").at(position), row.answer->logit, where + ": logit of the answer");
      EXPECT_EQ(expected.at("rank").at(position), row.answer->rank) << where;
    }
  }

  void same_parts(const Json& golden, const LogitParts& found, const std::string& name) {
    near(golden.at("difference"), found.difference, name + ": difference");
    near(golden.at("linear"), found.linear, name + ": before the soft cap");
    near(golden.at("linear"), found.sum, name + ": sum");
    ASSERT_EQ(found.parts.size(), golden.at("parts").size()) << name;
    for (const LogitPart& part : found.parts) {
      ASSERT_TRUE(golden.at("parts").contains(part.name)) << name << ": " << part.name;
      near(golden.at("parts").at(part.name), part.value, name + ": " + part.name);
    }
  }

  double worst_ = 0, worst_of_heads_ = 0, worst_of_lens_ = 0;
};

TEST_P(LookGolden, EqualsTheReference) {
  const Json golden = read_json_file(GAINLENS_SOURCE_DIR "/tests/golden/look.json");
  ASSERT_GE(golden.at("checkpoints").size(), 11u);
  for (const auto& [name, expected] : golden.at("checkpoints").items()) {
    models::LoadOptions load;
    load.dtype = GetParam();
    const auto model = models::load_own_decoder(GAINLENS_SOURCE_DIR "/tests/golden/models/" + name, load);
    const Json& attribution = expected.at("attribution");
    LookOptions options;
    options.lens = LensOptions{.answer = attribution.at("answer").get<std::int64_t>()};
    options.pair = interventions::AnswerPair{attribution.at("answer"), attribution.at("foil")};
    const PromptLook found = look_at(*model, {.tokens = expected.at("tokens")}, options);
    same_next(expected.at("next"), found.next, name + ": next");
    same_heads(expected.at("heads"), found, name);
    same_lens(expected.at("lens"), found, name);
    same_parts(attribution, *found.parts, name);
  }
  std::printf("largest difference: %.2e; of heads: %.2e; of the lens: %.2e\n", worst_, worst_of_heads_, worst_of_lens_);
}

INSTANTIATE_TEST_SUITE_P(Types, LookGolden, ::testing::Values(at::kFloat, at::kDouble),
                         [](const auto& test) { return test.param == at::kFloat ? "Float32" : "Float64"; });

}  // namespace golden_test
}  // namespace gainlens::look
