#include "interventions/gate_arm_reading.h"

#include "core/check.h"
#include "interventions/gate_pass.h"

#include <ATen/ATen.h>

#include <cmath>

namespace gainlens::interventions {
namespace {

double target_loss(models::Decoder& model, const at::Tensor& stream, const GateContext& context) {
  const std::int64_t length = std::ssize(context.tokens);
  const at::Tensor targets =
      at::tensor(std::vector<std::int64_t>(context.tokens.end() - context.targets, context.tokens.end()));
  const at::Tensor losses = model.target_losses(stream[0].slice(0, length - 1 - context.targets, length - 1), targets);
  const double loss = losses.mean().item<double>();
  if (!std::isfinite(loss))
    throw_run_failed("output head: the logits of the last {} targets are NaN or infinite", context.targets);
  return loss;
}

}  // namespace

std::vector<std::int32_t> last_tokens(const std::vector<std::int32_t>& document, std::int64_t length, bool bos) {
  ASSERT(2 <= length && length <= std::ssize(document), "a context of {} of {} tokens", length, document.size());
  std::vector<std::int32_t> tokens(document.end() - length, document.end());
  if (bos) tokens.front() = document.front();
  return tokens;
}

runfile::GateArmReading read_gate_arm(models::Decoder& model, GateArm arm, const GainCalibration& calibration,
                                      const GateContext& context, std::uint64_t seed) {
  const std::int64_t length = std::ssize(context.tokens);
  ASSERT(1 <= context.targets && context.targets < length, "{} targets in {} tokens", context.targets, length);
  const std::int64_t first = length - 1 - context.targets;  // of the queries that predict the targets
  const bool gated = model.config().gate != models::Gate::none;
  runfile::GateArmReading reading;
  bool changed = false;
  std::int64_t layers = 0;
  const at::Tensor stream = run_gate_pass(model, context.tokens, arm != GateArm::native, [&](const GateSite& site) {
    const auto over_targets = [&](const at::Tensor& by_query) {
      return by_query.slice(1, first, length - 1).mean(at::kDouble).item<double>();
    };
    ++layers;
    reading.n_eff += over_targets(site.statistics.n_eff);
    reading.bos_mass += over_targets(site.statistics.first_mass);
    if (arm == GateArm::native) {
      reading.gate_mean += gated ? site.gate.mean().item<double>() : 1;
      return at::Tensor();
    }
    const at::Tensor made =
        gate_of_arm(arm, site.statistics.observation_precision_by_dimension, site.gate,
                    calibration.layers.at(site.layer), seed, permutation_draw(context.document, length, site.layer));
    reading.gate_mean += made.mean().item<double>();
    changed = changed || !(gated ? at::equal(made, site.gate) : made.eq(1).all().item<bool>());
    return made;
  });
  ASSERT(layers > 0, "no layer has softmax attention");
  CHECK(changed || arm == GateArm::native, "arm '{}': it leaves every gate as it is, in a context of {} tokens",
        name_of(arm), length);
  for (double* number : {&reading.n_eff, &reading.bos_mass, &reading.gate_mean}) *number /= static_cast<double>(layers);
  reading.nll = target_loss(model, stream, context);
  return reading;
}

}  // namespace gainlens::interventions
