// Against tests/golden/family_interventions.json: hooks in the field's Python reference, every family, in float64.
#include "core/error.h"
#include "core/json.h"
#include "interventions/document_passes.h"
#include "interventions/site_values.h"
#include "models/checkpoint/load_decoder.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace gainlens::interventions {
namespace family_golden_test {

using Ids = std::vector<std::int32_t>;

/// The logits of the last position that the file has, in a whole pass with an arm; without one: as the model is.
at::Tensor some_logits(models::Decoder& model, const Ids& ids, const Arm* arm, const SiteValues& means,
                       const SiteValues& donor, std::int64_t every) {
  hooks::Hooks hooks;
  if (arm != nullptr) {
    const PlacedWrite& placed = arm->writes.front();
    hooks.replace(hooks::Glob(placed.place.site.name), [&, arm](const hooks::Site&, const at::Tensor& tensor) {
      at::Tensor changed = tensor.clone();
      at::Tensor part = arm->writes.front().place.part(changed, arm->writes.front().write);
      part.copy_(new_values(arm->writes.front(), part.clone(), means, donor));
      return changed;
    });
  }
  const hooks::Tokens tokens{at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end())).unsqueeze(0)};
  return model.unembed(model.forward(tokens, {}, hooks).hidden)[0][-1].slice(0, 0, {}, every).to(at::kDouble);
}

void compare(const std::string& name, const Json& golden, std::int64_t every, at::ScalarType dtype) {
  const double tolerance = dtype == at::kDouble ? 1e-9 : 1e-5;
  models::LoadOptions load;
  load.dtype = dtype;
  const auto model = models::load_own_decoder(GAINLENS_SOURCE_DIR "/tests/golden/models/" + name, load);
  const Ids ids = golden.at("tokens"), donor_ids = golden.at("donor"), calibration = golden.at("calibration");
  const double native = golden.at("results").at("native").at("nll");
  for (const auto& [text, expected] : golden.at("results").items()) {
    const std::string where = name + ": " + text;
    const double nll = expected.at("nll");
    const at::Tensor logits = at::tensor(expected.at("logits").get<std::vector<double>>(), at::kDouble);
    std::optional<Arm> arm;
    SiteValues means, donor;
    if (text != "native") {
      arm = place_arm(parse_intervention(text), model->config(), model->sites(), std::ssize(ids), dtype);
      means = site_means(*model, {calibration}, arm->sites(Mode::mean), {});
      donor = site_values(*model, donor_ids, arm->sites(Mode::resample), {});
      DocumentPasses passes(*model, ids, {arm->start()}, {});
      EXPECT_NEAR(passes.run({&*arm}, means, donor)[0].nll, nll, tolerance) << where;
      // Had the intervention done nothing, the comparison would say so.
      EXPECT_GT(std::abs(nll - native), 1e-5) << where;
    }
    const at::Tensor found = some_logits(*model, ids, arm ? &*arm : nullptr, means, donor, every);
    EXPECT_LT(((found - logits).abs().max() / logits.abs().max()).item<double>(), tolerance) << where;
  }
}

TEST(FamilyInterventions, EqualTheReferenceWithHooks) {
  const c10::InferenceMode inference;
  const Json golden = read_json_file(GAINLENS_SOURCE_DIR "/tests/golden/family_interventions.json");
  ASSERT_GE(golden.at("checkpoints").size(), 30u);
  for (const auto& [name, checkpoint] : golden.at("checkpoints").items())
    compare(name, checkpoint, golden.at("every").get<std::int64_t>(), at::kFloat);
}

/// In float64 an expert's products depend on how many rows it gets, and so do the bits of positions before a write.
class FamilyWithExperts : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Goldens, FamilyWithExperts,
                         ::testing::Values("mixtral", "gpt-oss", "deepseek-v2", "deepseek-v3", "qwen3-moe"));

TEST_P(FamilyWithExperts, IsChangedAtOnePositionInFloat64) {
  const c10::InferenceMode inference;
  const std::string name = GetParam();
  const Json golden = read_json_file(GAINLENS_SOURCE_DIR "/tests/golden/family_interventions.json");
  const Json& checkpoint = golden.at("checkpoints").at(name);
  compare(name, checkpoint, golden.at("every").get<std::int64_t>(), at::kDouble);

  models::LoadOptions load;
  load.dtype = at::kDouble;
  const auto model = models::load_own_decoder(GAINLENS_SOURCE_DIR "/tests/golden/models/" + name, load);
  const Ids ids = checkpoint.at("tokens"), donor_ids = checkpoint.at("donor");
  DocumentPasses passes(*model, ids, {0, 1}, {});
  for (const std::string layer : {"0", "1"}) {
    std::vector<Arm> arms;
    for (std::int64_t position = 1; position < std::ssize(ids); ++position) {
      for (const char* value : {"zero", "resample"}) {
        const std::string text = fmt::format("blocks.{}.hook_resid_pre[position={}]={}", layer, position, value);
        arms.push_back(
            place_arm(parse_intervention(text), model->config(), model->sites(), std::ssize(ids), at::kDouble));
      }
    }
    std::vector<const Arm*> all;
    for (const Arm& arm : arms) all.push_back(&arm);
    const SiteValues donor = site_values(*model, donor_ids, {arms[0].writes[0].write.site}, {});
    const auto effects = passes.run(all, {}, donor);
    for (std::size_t i = 0; i < arms.size(); ++i) {
      EXPECT_GT(effects[i].largest_logit_change, 1e-6) << arms[i].text;
      const at::Tensor logits = some_logits(*model, ids, &arms[i], {}, donor, 1);
      EXPECT_TRUE(logits.isfinite().all().item<bool>());
    }
  }
}

/// The tolerance is that of rounding alone: a write that reaches back is still seen.
TEST(PassesWithExperts, SeeAWriteThatReachesBack) {
  const c10::InferenceMode inference;
  models::LoadOptions load;
  load.dtype = at::kDouble;
  const auto model = models::load_own_decoder(GAINLENS_SOURCE_DIR "/tests/golden/models/mixtral", load);
  const Ids ids = {5, 9, 33, 12, 40, 7};
  Arm arm = place_arm(parse_intervention("blocks.1.hook_resid_pre[position=2]=1.5"), model->config(), model->sites(),
                      std::ssize(ids), at::kDouble);
  arm.writes.front().write.position = IndexRange::one(4);  // what the check takes for its first position
  Arm reaching = arm;
  reaching.writes.push_back(arm.writes.front());
  reaching.writes.back().write.position = IndexRange{4, 5};
  reaching.writes.back().place.position_axis = 2;  // a coordinate of every position, 0 included
  DocumentPasses passes(*model, ids, {1}, {});
  EXPECT_NO_THROW(passes.run({&arm}, {}, {}));
  EXPECT_THROW(passes.run({&reaching}, {}, {}), RunFailed);
}

}  // namespace family_golden_test
}  // namespace gainlens::interventions
