#include "recommend/settings.h"

#include "core/check.h"
#include "core/nearest.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

namespace gainlens::recommend {
namespace {

#define GAINLENS_MEMBER(name) ([](Settings & settings) -> auto& { return settings.name; })

std::vector<Knob<Settings>> make_knobs(const BackboneKind& backbone) {
  auto made = knobs_of_part<Settings>(std::span<const Knob<Json>>(backbone.knobs), GAINLENS_MEMBER(model));
  const auto training_part = knobs_of_part<Settings>(std::span<const Knob<TrainingSettings>>(training_knobs()),
                                                     [](Settings& settings) -> TrainingSettings& { return settings; });
  const auto filter_part = knobs_of_part<Settings>(bft::filter_knobs(), GAINLENS_MEMBER(filter));
  made.insert(made.end(), training_part.begin(), training_part.end());
  made.insert(made.end(), filter_part.begin(), filter_part.end());
  return made;
}

#undef GAINLENS_MEMBER

/// What no source of settings has changed.
Settings default_settings(const BackboneKind& backbone) {
  Settings settings;
  settings.backbone = &backbone;
  set_knobs(knobs(backbone), settings, backbone.defaults, "defaults");
  return settings;
}

void check_together(const Settings& settings, const std::string& where) {
  const double most = settings.backbone->max_dropout;
  for (const auto& [key, rate] :
       {std::pair{"dropout", settings.dropout}, {"attention_dropout", settings.attention_dropout}})
    CHECK(rate <= most, "{}: '{}' is {}; backbone {} takes at most {}", where, key, rate, settings.backbone->name,
          most);
  settings.backbone->check(plan_of(settings, Arm::plain, 1), where);
  bft::check(settings.filter, where);
}

}  // namespace

std::span<const Knob<Settings>> knobs(const BackboneKind& backbone) {
  static const std::map<std::string, std::vector<Knob<Settings>>> by_backbone = [] {
    std::map<std::string, std::vector<Knob<Settings>>> made;
    for (const BackboneKind& kind : backbones()) made[kind.name] = make_knobs(kind);
    return made;
  }();
  return by_backbone.at(backbone.name);
}

ModelPlan plan_of(const Settings& settings, Arm arm, std::int64_t items) {
  return {settings.model, arm, settings.filter, items};
}

OrderedJson to_json(const Settings& settings) {
  return knobs_to_json(knobs(*settings.backbone), settings);
}

void check_settings(const Json& changes, const std::string& where, const BackboneKind& backbone) {
  Settings settings = default_settings(backbone);
  set_knobs(knobs(backbone), settings, changes, where);
}

Settings settings_of(const Json& changes, const std::string& where, const BackboneKind& backbone) {
  Settings settings = default_settings(backbone);
  set_knobs(knobs(backbone), settings, changes, where);
  check_together(settings, where);
  return settings;
}

Settings stored_settings(const Json& stored, const std::string& where, const BackboneKind& backbone) {
  Settings settings;
  settings.backbone = &backbone;
  read_knobs(knobs(backbone), settings, stored, where);
  check_together(settings, where);
  return settings;
}

training::RequestRules request_rules(const BackboneKind& backbone) {
  return {.may_grow = {"/training/epochs"},
          .may_gain = {"/variants"},
          .names = {"/data/name"},
          .first = {"/backbone"},
          .hints = {{"/training/embedding_norm", "earlier versions trained without this norm: --preset paper-no-norm"}},
          .absent = {{"", {{"processes", 1}, {"variants", Json::object()}}},
                     {"/data", {{"untested_items", 0}}},
                     {"/training", absent_values(knobs(backbone))}},
          .complete = {"", "/data", "/training"}};
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
      {"paper", "what the paper states, and a norm after the embeddings", {{"embedding_norm", true}}},
      {"paper-no-norm", "the same without that norm, as runs of earlier versions", Json::object()},
      {"beauty-tuned",
       "paper, with what the paper changes for Beauty",
       {{"embedding_norm", true},
        {"initial_precision", "count"},
        {"most_precision", 20},
        {"recency_decay", true},
        {"epochs", 300},
        {"patience", 30}}},
  };
  return all;
}

Json preset(std::string_view name, const BackboneKind& backbone) {
  std::vector<Preset> all = presets();
  all.insert(all.end(), backbone.presets.begin(), backbone.presets.end());
  std::vector<std::string> names;
  for (const Preset& known : all) {
    names.push_back(known.name);
    if (known.name != name) continue;
    Json changes = known.changes;
    constexpr const char* norm = "embedding_norm";
    if (std::ranges::find(backbone.knobs, norm, &Knob<Json>::key) == backbone.knobs.end()) changes.erase(norm);
    return changes;
  }
  throw_invalid("--preset: '{}'; must be one of {}{}", printable(name, 60), fmt::join(names, ", "),
                did_you_mean(name, names));
}

}  // namespace gainlens::recommend
