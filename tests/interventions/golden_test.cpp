// Against tests/golden/interventions.json: what an independent program in numpy computes in float64.
#include "core/json.h"
#include "interventions/document_passes.h"
#include "interventions/site_values.h"
#include "models/checkpoint/load_decoder.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace gainlens::interventions {
namespace golden_test {

using Tokens = std::vector<std::int32_t>;

/// The logits of the last position in a whole pass with an arm.
at::Tensor last_logits(models::Decoder& model, const Tokens& ids, const Arm& arm, const SiteValues& means,
                       const SiteValues& donor) {
  hooks::Hooks hooks;
  for (const PlacedWrite& placed : arm.writes) {
    hooks.replace(hooks::Glob(placed.place.site.name), [&](const hooks::Site&, const at::Tensor& tensor) {
      at::Tensor changed = tensor.clone();
      at::Tensor part = placed.place.part(changed, placed.write);
      part.copy_(new_values(placed, part.clone(), means, donor));
      return changed;
    });
  }
  const hooks::Tokens tokens{at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end())).unsqueeze(0)};
  return model.unembed(model.forward(tokens, {}, hooks).hidden)[0][-1];
}

void compare_checkpoint(const std::string& name, const Json& golden, at::ScalarType dtype, double tolerance) {
  models::LoadOptions load;
  load.dtype = dtype;
  const auto model = models::load_own_decoder(GAINLENS_SOURCE_DIR "/tests/golden/models/" + name, load);
  const Tokens ids = golden.at("tokens"), donor_ids = golden.at("donor"), calibration = golden.at("calibration");
  std::vector<Arm> arms;
  std::set<std::string> averaged, resampled;
  std::set<std::int64_t> starts;
  for (const auto& [text, expected] : golden.at("interventions").items()) {
    arms.push_back(place_arm(parse_intervention(text), model->config(), model->sites(), std::ssize(ids), dtype));
    averaged.merge(arms.back().sites(Mode::mean));
    resampled.merge(arms.back().sites(Mode::resample));
    starts.insert(arms.back().start());
  }
  const SiteValues means = site_means(*model, {calibration}, averaged, {});
  const SiteValues donor = site_values(*model, donor_ids, resampled, {});
  DocumentPasses passes(*model, ids, starts, {});
  EXPECT_NEAR(passes.native_nll(), golden.at("native").at("nll").get<double>(), tolerance) << name;
  for (const Arm& arm : arms) {
    const Json& expected = golden.at("interventions").at(arm.text);
    const InterventionEffect found = passes.run({&arm}, means, donor)[0];
    const double before = expected.at("norm_before"), after = expected.at("norm_after");
    EXPECT_NEAR(found.nll, expected.at("nll").get<double>(), tolerance) << name << ": " << arm.text;
    EXPECT_NEAR(found.site_norm_before, before, tolerance * before) << name << ": " << arm.text;
    EXPECT_NEAR(found.site_norm_after, after, tolerance * after) << name << ": " << arm.text;
    const at::Tensor logits = at::tensor(expected.at("logits").get<std::vector<double>>(), at::kDouble);
    const at::Tensor ours = last_logits(*model, ids, arm, means, donor).to(at::kDouble);
    const double error = ((ours - logits).abs().max() / logits.abs().max()).item<double>();
    EXPECT_LT(error, tolerance) << name << ": " << arm.text;
    // Had the intervention done nothing, the comparison would say so.
    EXPECT_GT(std::abs(expected.at("nll").get<double>() - golden.at("native").at("nll").get<double>()), 1e-4)
        << arm.text;
  }
}

TEST(InterventionGolden, EqualsAnIndependentProgram) {
  const c10::InferenceMode inference;
  const Json golden = read_json_file(GAINLENS_SOURCE_DIR "/tests/golden/interventions.json");
  ASSERT_EQ(golden.at("checkpoints").size(), 2u);
  for (const auto& [name, checkpoint] : golden.at("checkpoints").items()) {
    compare_checkpoint(name, checkpoint, at::kFloat, 1e-5);
    compare_checkpoint(name, checkpoint, at::kDouble, 1e-10);
  }
}

}  // namespace golden_test
}  // namespace gainlens::interventions
