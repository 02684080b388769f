#include "analyses/intervention_effects.h"

#include "core/check.h"

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
namespace {

/// The mean of a number over documents.
double mean_of(const std::vector<InterventionEffect>& documents, double InterventionEffect::*number) {
  std::vector<double> values(documents.size());
  std::ranges::transform(documents, values.begin(), number);
  return mean(values);
}

/// Why an arm without any effect has no interval.
constexpr const char* changes_nothing = "the intervention changes nothing";

Maybe<Interval> delta_interval(const std::vector<double>& deltas, double scale) {
  if (deltas.size() >= 2 && alike(deltas, scale))
    return Maybe<Interval>::none("the difference is the same in every document, up to rounding");
  if (deltas.size() < 2) return Maybe<Interval>::none("an interval over documents needs at least 2");
  return mean_interval(deltas);
}

ChangedMean difference_of(const std::vector<InterventionEffect>& documents, const std::vector<double>& native) {
  std::vector<double> values, deltas;
  double scale = 0;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    values.push_back(*documents[i].answer);
    deltas.push_back(values.back() - native[i]);
    scale = std::max({scale, std::abs(values.back()), std::abs(native[i])});
  }
  return {mean(values), mean(deltas), delta_interval(deltas, scale)};
}

ArmEffect effect_of(const runfile::InterventionRun& run, std::size_t arm, double native) {
  const std::vector<InterventionEffect>& documents = run.effects.at(arm);
  std::vector<double> deltas;
  double largest = 0;
  std::size_t changed = 0;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    deltas.push_back(documents[i].nll - run.native[i]);
    largest = std::max(largest, documents[i].largest_logit_change);
    if (documents[i].largest_logit_change > 0) ++changed;
  }
  std::optional<ChangedMean> answer;
  if (!run.native_answers.empty()) answer = difference_of(documents, run.native_answers);
  if (answer && changed == 0) answer->interval = Maybe<Interval>::none(changes_nothing);
  const double nll = mean_of(documents, &InterventionEffect::nll);
  return {run.arms[arm].text,
          nll,
          changed == 0 ? 0 : nll - native,
          changed == 0 ? Maybe<Interval>::none(changes_nothing) : delta_interval(deltas, std::max(nll, native)),
          mean_of(documents, &InterventionEffect::site_norm_before),
          mean_of(documents, &InterventionEffect::site_norm_after),
          largest,
          changed,
          answer};
}

OrderedJson to_json(const ArmEffect& effect) {
  OrderedJson json = {{"intervention", effect.intervention}, {"nll", effect.nll}, {"delta", effect.delta}};
  put(json, "interval", effect.interval);
  if (effect.answer) {
    json["logit_difference"] = effect.answer->value;
    json["logit_difference_delta"] = effect.answer->delta;
    put(json, "logit_difference_interval", effect.answer->interval);
  }
  json["site_norm_before"] = effect.site_norm_before;
  json["site_norm_after"] = effect.site_norm_after;
  json["largest_logit_change"] = effect.largest_logit_change;
  json["changes_nothing"] = effect.changes_nothing();
  json["documents_changed"] = effect.documents_changed;
  return json;
}

}  // namespace

InterventionEffects intervention_effects(const runfile::InterventionRun& run) {
  InterventionEffects effects{run.documents(), mean(run.native), {}};
  if (!run.native_answers.empty()) {
    effects.native_answer = mean(run.native_answers);
    const Json asked = run.request.value("answer", Json::object());
    const Json texts = asked.is_object() ? asked.value("texts", Json()) : Json();
    const auto text_at = [&](std::size_t i) {
      return texts.is_array() && texts.size() == 2 && texts[i].is_string() ? texts[i].get<std::string>()
                                                                           : std::string("?");
    };
    effects.answer = text_at(0);
    effects.foil = text_at(1);
  }
  for (std::size_t i = 0; i < run.asked; ++i) {
    const runfile::InterventionArm& arm = run.arms[i];
    ControlledArm& made =
        effects.arms.emplace_back(ControlledArm{effect_of(run, i, effects.native_nll), std::nullopt, arm.no_control});
    if (arm.control) made.control = effect_of(run, *arm.control, effects.native_nll);
  }
  return effects;
}

OrderedJson to_json(const InterventionEffects& effects) {
  OrderedJson json = {{"native", {{"nll", effects.native_nll}}}, {"arms", OrderedJson::array()}};
  if (effects.native_answer) {
    json["native"]["logit_difference"] = *effects.native_answer;
    json["answer"] = effects.answer;
    json["foil"] = effects.foil;
  }
  for (const ControlledArm& one : effects.arms) {
    OrderedJson arm = to_json(one.arm);
    arm["control"] = nullptr;
    if (one.control) arm["control"] = to_json(*one.control);
    if (!one.no_control.empty()) arm["control_reason"] = one.no_control;
    json["arms"].push_back(std::move(arm));
  }
  json["documents"] = effects.documents;
  return json;
}

}  // namespace gainlens::analyses
