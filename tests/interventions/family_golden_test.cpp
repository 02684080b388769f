// Against tests/golden/family_interventions.json: hooks in the field's Python reference, every family, in float64.
#include "core/json.h"
#include "interventions/document_passes.h"
#include "interventions/site_values.h"
#include "models/checkpoint/load_decoder.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace gainlens::interventions {
namespace {

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

void compare(const std::string& name, const Json& golden, std::int64_t every) {
  models::LoadOptions load;
  load.dtype = at::kFloat;
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
      arm = place_arm(parse_intervention(text), model->config(), model->sites(), std::ssize(ids), at::kFloat);
      means = site_means(*model, {calibration}, arm->sites(Mode::mean), {});
      donor = site_values(*model, donor_ids, arm->sites(Mode::resample), {});
      DocumentPasses passes(*model, ids, {arm->start()}, {});
      EXPECT_NEAR(passes.run({&*arm}, means, donor)[0].nll, nll, 1e-5) << where;
      // Had the intervention done nothing, the comparison would say so.
      EXPECT_GT(std::abs(nll - native), 1e-5) << where;
    }
    const at::Tensor found = some_logits(*model, ids, arm ? &*arm : nullptr, means, donor, every);
    EXPECT_LT(((found - logits).abs().max() / logits.abs().max()).item<double>(), 1e-5) << where;
  }
}

TEST(FamilyInterventions, EqualTheReferenceWithHooks) {
  const c10::InferenceMode inference;
  const Json golden = read_json_file(GAINLENS_SOURCE_DIR "/tests/golden/family_interventions.json");
  ASSERT_GE(golden.at("checkpoints").size(), 30u);
  for (const auto& [name, checkpoint] : golden.at("checkpoints").items())
    compare(name, checkpoint, golden.at("every").get<std::int64_t>());
}

}  // namespace
}  // namespace gainlens::interventions
