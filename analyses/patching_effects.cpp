#include "analyses/patching_effects.h"

#include "analyses/statistics.h"
#include "core/check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace gainlens::analyses {
namespace {

Measured normalised(double metric, const runfile::PatchedPrompt& direction) {
  const double span = direction.other - direction.base;
  if (is_rounding(span, std::max(std::abs(direction.other), std::abs(direction.base))))
    return Measured::none("both runs have the same metric");
  return (metric - direction.base) / span;
}

std::vector<std::string> texts_of(const Json& request, const char* key) {
  const Json prompt = request.value(key, Json());
  CHECK(prompt.is_object() && prompt.contains("texts") && prompt["texts"].is_array(),
        "patching.json: its request has no prompt '{}'; delete it and repeat the command", key);
  std::vector<std::string> texts;
  for (const Json& text : prompt["texts"]) texts.push_back(text.is_string() ? text.get<std::string>() : "?");
  return texts;
}

/// The patches of each site that have either a head or a position.
std::vector<PatchGrid> grids_of(const std::vector<runfile::Patch>& patches) {
  std::map<std::pair<std::string, bool>, std::vector<std::size_t>> by_site;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    const runfile::Patch& patch = patches[i];
    if (!patch.site.empty() && patch.head.has_value() != patch.position.has_value())
      by_site[{patch.site, patch.head.has_value()}].push_back(i);
  }
  std::vector<PatchGrid> grids;
  for (const auto& [key, places] : by_site) {
    if (places.size() < 2) continue;
    std::set<std::int64_t> layers;
    std::int64_t columns = 0;
    const bool heads = key.second;
    const auto column_of = [&](std::size_t i) { return heads ? *patches[i].head : *patches[i].position; };
    for (const std::size_t i : places) {
      layers.insert(patches[i].layer);
      columns = std::max(columns, column_of(i) + 1);
    }
    PatchGrid grid{key.first, heads, {layers.begin(), layers.end()}, columns, {}};
    grid.cells.resize(layers.size() * static_cast<std::size_t>(columns));
    for (const std::size_t i : places) {
      const auto row = std::distance(layers.begin(), layers.find(patches[i].layer));
      grid.cells[static_cast<std::size_t>(row * columns + column_of(i))] = i;
    }
    grids.push_back(std::move(grid));
  }
  // First the map that says where in the text it happens.
  std::ranges::stable_sort(grids, {}, &PatchGrid::heads);
  return grids;
}

OrderedJson prompt_json(double metric, const std::vector<std::string>& tokens) {
  return {{"metric", metric}, {"tokens", tokens}};
}

}  // namespace

std::string PatchingEffects::metric_words() const {
  return metric == "logit_difference" ? fmt::format("logit of {} minus logit of {}", printable(answer), printable(foil))
                                      : "divergence from the clean run (KL, nats)";
}

PatchingEffects patching_effects(const runfile::PatchingRun& run) {
  PatchingEffects effects;
  const Json answer = run.request.value("answer", Json());
  effects.metric = answer.is_object() ? "logit_difference" : "kl_to_clean";
  if (answer.is_object()) {
    const Json texts = answer.value("texts", Json());
    CHECK(texts.is_array() && texts.size() == 2 && texts[0].is_string() && texts[1].is_string(),
          "patching.json: its request has no texts of the answer; delete it and repeat the command");
    effects.answer = texts[0].get<std::string>();
    effects.foil = texts[1].get<std::string>();
  }
  effects.clean = texts_of(run.request, "clean");
  effects.corrupt = texts_of(run.request, "corrupt");
  CHECK(effects.clean.size() == effects.corrupt.size(),
        "patching.json: its prompts have other lengths; delete it and repeat the command");
  effects.patches = run.patches;
  for (const runfile::PatchDirection direction : runfile::patch_directions) {
    const runfile::PatchedPrompt& prompt = run.directions[static_cast<std::size_t>(direction)];
    DirectionResult& result =
        effects.directions.emplace_back(DirectionResult{direction, prompt.base, prompt.other, {}});
    for (const runfile::PatchEffect& effect : prompt.effects)
      result.patches.push_back({effect, normalised(effect.metric, prompt)});
  }
  effects.grids = grids_of(run.patches);
  return effects;
}

OrderedJson to_json(const PatchingEffects& effects) {
  OrderedJson json = {{"metric", effects.metric}};
  if (effects.metric == "logit_difference") {
    json["answer"] = effects.answer;
    json["foil"] = effects.foil;
  }
  json["clean"] = prompt_json(effects.clean_metric(), effects.clean);
  json["corrupt"] = prompt_json(effects.corrupt_metric(), effects.corrupt);
  for (const DirectionResult& direction : effects.directions) {
    OrderedJson patches = OrderedJson::array();
    for (std::size_t i = 0; i < direction.patches.size(); ++i) {
      const PatchResult& result = direction.patches[i];
      OrderedJson patch = {{"intervention", effects.patches[i].text}, {"metric", result.effect.metric}};
      put(patch, "normalised", result.normalised);
      patch["site_norm_before"] = result.effect.site_norm_before;
      patch["site_norm_after"] = result.effect.site_norm_after;
      patch["largest_logit_change"] = result.effect.largest_logit_change;
      patch["changes_nothing"] = result.changes_nothing();
      patches.push_back(std::move(patch));
    }
    json[std::string(name_of(direction.direction))] = {
        {"base", direction.base}, {"other", direction.other}, {"patches", std::move(patches)}};
  }
  return json;
}

}  // namespace gainlens::analyses
