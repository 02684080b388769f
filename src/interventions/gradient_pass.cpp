#include "interventions/gradient_pass.h"

#include "core/check.h"
#include "core/random.h"
#include "interventions/document_passes.h"
#include "interventions/rounding.h"
#include "sweep/one_sequence.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace gainlens::interventions {
namespace {

/// Mean negative log likelihood of the targets of a document, with a gradient.
at::Tensor mean_loss_of(models::Decoder& model, const at::Tensor& stream, const at::Tensor& ids,
                        const Question& question) {
  const std::int64_t scored = ids.size(1) - 1, end = scored - question.after;
  const std::int64_t first = question.targets ? end - *question.targets : 0;
  const at::Tensor rows = stream[0].slice(0, first, end);
  const at::Tensor targets = ids[0].slice(0, first + 1, end + 1).to(stream.device());
  if (!model.config().head_bias) return model.mean_loss(rows, targets);
  const at::Tensor log_p = model.unembed(rows).log_softmax(-1);
  return -log_p.gather(-1, targets.unsqueeze(1)).mean();
}

}  // namespace

GradientPass::GradientPass(models::Decoder& model, const std::vector<std::int32_t>& tokens,
                           const std::set<std::string>& sites, const hooks::ForwardOptions& options,
                           const Question& question) {
  ASSERT(!c10::InferenceMode::is_enabled(), "no gradients in inference mode");
  CHECK(!model.config().filter,
        "--approximate: the model has a Bayesian filter, whose Jacobian passes no slope; leave "
        "the option out");
  const c10::AutoGradMode with_gradients(true);
  const hooks::Tokens input = sweep::one_sequence(tokens);
  hooks::Hooks hooks;
  // All that follows the embedding gets a slope, and no weight.
  hooks.replace(hooks::Glob("hook_embed"), [](const hooks::Site&, const at::Tensor& embedded) {
    return embedded.detach().clone().requires_grad_(true);
  });
  for (const std::string& name : sites) {
    hooks.replace(hooks::Glob(name), [this](const hooks::Site& site, const at::Tensor& tensor) {
      // Vectors of positions do not follow from the embedding: they begin a path of their own.
      const at::Tensor kept = tensor.requires_grad() ? tensor : tensor.detach().clone().requires_grad_(true);
      kept.retain_grad();
      values_[site.name] = kept;
      return kept;
    });
  }
  const at::Tensor stream = model.forward(input, options, hooks).hidden;
  at::Tensor value;
  if (question.pair) {
    const at::Tensor logits = model.unembed(stream[0].slice(0, input.ids.size(1) - 1))[0];
    value = logits[question.pair->answer] - logits[question.pair->foil];
  } else {
    value = mean_loss_of(model, stream, input.ids, question);
  }
  value_ = value.item<double>();
  if (!std::isfinite(value_)) throw_run_failed("output head: the logits are NaN or infinite");
  value.backward();
  for (auto& [name, tensor] : values_) {
    const at::Tensor slope = tensor.grad();
    // Values that reach no target have none: those of the last position, for a loss.
    slopes_[name] = slope.defined() ? slope.to(at::kDouble) : at::zeros_like(tensor.detach(), at::kDouble);
    if (!slopes_[name].isfinite().all().item<bool>())
      throw_run_failed("{}: the slope of the output is NaN or infinite", name);
    tensor = tensor.detach();
  }
}

Estimate GradientPass::estimate(const Arm& arm, const SiteValues& means, const SiteValues& donor) const {
  constexpr double steps = 8;  // of rounding, in each number of a site
  double change = 0, squares = 0;
  for (const PlacedWrite& placed : arm.writes) {
    const at::Tensor old = placed.place.part(values_.at(placed.write.site), placed.write);
    const at::Tensor made = new_values(placed, old, means, donor).to(at::kDouble), before = old.to(at::kDouble);
    const at::Tensor slope = placed.place.part(slopes_.at(placed.write.site), placed.write);
    change += (slope * (made - before)).sum().item<double>();
    // The numbers of a site are rounded independently.
    squares +=
        (slope * (made.abs() + before.abs())).square().sum().item<double>() * std::pow(unit_of(old.scalar_type()), 2);
  }
  return {change, steps * std::sqrt(squares)};
}

void check_can_approximate(bool stream_weights) {
  CHECK(!stream_weights, "--approximate: a backward pass needs all weights at once; leave --stream-weights out");
}

std::vector<double> exact_changes(models::Decoder& model, const std::vector<std::int32_t>& tokens,
                                  const std::vector<const Arm*>& arms, const SiteValues& means, const SiteValues& donor,
                                  const hooks::ForwardOptions& options, const Question& question) {
  const c10::InferenceMode inference;
  std::set<std::int64_t> starts;
  for (const Arm* arm : arms) starts.insert(arm->start());
  DocumentPasses passes(model, tokens, starts, options, question);
  std::vector<double> changes;
  for (const Arm* arm : arms) {
    Arm lenient = *arm;  // that it may do nothing is a result here
    lenient.may_do_nothing = true;
    const InterventionEffect effect = passes.run({&lenient}, means, donor).front();
    changes.push_back(question.pair ? *effect.answer - *passes.native_answer() : effect.nll - passes.native_nll());
  }
  return changes;
}

std::vector<std::size_t> drawn_places(const std::vector<std::string>& kinds, const std::vector<bool>& acts,
                                      std::uint64_t seed) {
  std::map<std::string, std::vector<std::size_t>> by_kind;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (acts[i]) by_kind[kinds[i]].push_back(i);
  }
  std::vector<std::size_t> drawn;
  for (auto& [kind, places] : by_kind) {
    Random random(seed, 0x6174747269);  // apart from the streams of controls and donors
    random.shuffle(places);
    places.resize(std::min(places.size(), exact_ones));
    drawn.insert(drawn.end(), places.begin(), places.end());
  }
  std::ranges::sort(drawn);
  return drawn;
}

}  // namespace gainlens::interventions
