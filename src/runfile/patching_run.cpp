#include "runfile/patching_run.h"

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

constexpr ResultForm patching_form = {patching_result, patching_run_format, patching_run_version};

Json to_json(const PatchEffect& effect) {
  return {{"metric", effect.metric},
          {"site_norm_before", effect.site_norm_before},
          {"site_norm_after", effect.site_norm_after},
          {"largest_logit_change", effect.largest_logit_change}};
}

PatchEffect patch_effect_from(const Json& json) {
  return {number_in(json, "metric"), number_in(json, "site_norm_before"), number_in(json, "site_norm_after"),
          number_in(json, "largest_logit_change")};
}

Json to_json(const PatchedPrompt& prompt) {
  Json effects = Json::array();
  for (const PatchEffect& effect : prompt.effects) effects.push_back(to_json(effect));
  return {{"base", prompt.base}, {"other", prompt.other}, {"effects", effects}};
}

PatchedPrompt prompt_from(const Json& json, std::size_t patches) {
  PatchedPrompt prompt{number_in(json, "base"), number_in(json, "other"), {}};
  const Json& effects = json.at("effects");
  CHECK(effects.is_array() && effects.size() == patches, "it needs {} effects", patches);
  for (const Json& effect : effects) prompt.effects.push_back(patch_effect_from(effect));
  return prompt;
}

Json to_json(const Patch& patch) {
  Json json = {{"patch", patch.text}};
  if (patch.site.empty()) return json;
  json["site"] = patch.site;
  json["layer"] = patch.layer;
  if (patch.head) json["head"] = *patch.head;
  if (patch.position) json["position"] = *patch.position;
  return json;
}

std::optional<std::int64_t> patch_index(const Json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  const auto place = json.at(key).get<std::int64_t>();
  CHECK(0 <= place && place < (std::int64_t{1} << 31), "{} {} cannot be", key, place);
  return place;
}

Patch patch_from(const Json& json) {
  Patch patch{json.at("patch").get<std::string>()};
  if (!json.contains("site")) return patch;
  patch.site = json.at("site").get<std::string>();
  patch.layer = patch_index(json, "layer").value_or(0);
  patch.head = patch_index(json, "head");
  patch.position = patch_index(json, "position");
  return patch;
}

}  // namespace

std::string_view name_of(PatchDirection direction) {
  return direction == PatchDirection::denoising ? "denoising" : "noising";
}

std::string patch_unit_name(PatchDirection direction, std::int64_t layer) {
  return fmt::format("{}-layer-{}", name_of(direction), layer);
}

Json to_json(const PatchingUnit& unit) {
  Json json = to_json(unit.prompt);
  json["patches"] = unit.patches;
  return json;
}

PatchingUnit patching_unit_from(const Json& json) {
  PatchingUnit unit{json.at("patches").get<std::vector<std::size_t>>(), {}};
  unit.prompt = prompt_from(json, unit.patches.size());
  return unit;
}

Json to_json(const PatchingRun& run) {
  Json patches = Json::array(), directions = Json::object();
  for (const Patch& patch : run.patches) patches.push_back(to_json(patch));
  for (const PatchDirection direction : patch_directions)
    directions[std::string(name_of(direction))] = to_json(run.directions[static_cast<std::size_t>(direction)]);
  return {{"format", patching_run_format},
          {"version", patching_run_version},
          {"request", run.request},
          {"patches", patches},
          {"directions", directions}};
}

void write_patching_run(const fs::path& folder, const PatchingRun& run) {
  store_result(folder, patching_form, to_json(run));
}

PatchingRun read_patching_run(const fs::path& folder, Proof proof) {
  return read_result(folder, patching_form, proof, [](const Json& json) {
    PatchingRun run;
    run.request = json.at("request");
    for (const Json& patch : json.at("patches")) run.patches.push_back(patch_from(patch));
    CHECK(!run.patches.empty(), "no patches");
    for (const PatchDirection direction : patch_directions) {
      run.directions[static_cast<std::size_t>(direction)] =
          prompt_from(json.at("directions").at(std::string(name_of(direction))), run.patches.size());
    }
    return run;
  });
}

}  // namespace gainlens::runfile
