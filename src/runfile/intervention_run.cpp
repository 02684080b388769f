#include "runfile/intervention_run.h"

#include "runfile/run_store.h"

#include <string_view>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

constexpr ResultForm intervention_form = {intervention_result, intervention_run_format, intervention_run_version};

Json to_json(const InterventionEffect& effect) {
  Json json = {{"nll", effect.nll},
               {"site_norm_before", effect.site_norm_before},
               {"site_norm_after", effect.site_norm_after},
               {"largest_logit_change", effect.largest_logit_change}};
  if (effect.answer) json["logit_difference"] = *effect.answer;
  return json;
}

std::optional<double> answer_in(const Json& json) {
  if (!json.contains("logit_difference")) return std::nullopt;
  return number_in(json, "logit_difference");
}

InterventionEffect effect_from(const Json& json) {
  return {number_in(json, "nll"), number_in(json, "site_norm_before"), number_in(json, "site_norm_after"),
          number_in(json, "largest_logit_change"), answer_in(json)};
}

std::vector<InterventionEffect> effects_from(const Json& json, std::size_t count) {
  CHECK(json.is_array() && json.size() == count, "it needs {} effects", count);
  std::vector<InterventionEffect> effects;
  for (const Json& entry : json) effects.push_back(effect_from(entry));
  return effects;
}

Json to_json(const InterventionArm& arm, const std::vector<InterventionEffect>& effects) {
  Json json = {{"intervention", arm.text}, {"documents", Json::array()}};
  if (arm.control) json["control"] = *arm.control;
  if (!arm.no_control.empty()) json["no_control"] = arm.no_control;
  for (const InterventionEffect& effect : effects) json["documents"].push_back(to_json(effect));
  return json;
}

}  // namespace

std::string unit_name(std::size_t document, std::int64_t layer) {
  return fmt::format("document-{}-layer-{}", document, layer);
}

Json to_json(const InterventionUnit& unit) {
  Json json = {{"arms", unit.arms}, {"native", unit.native}, {"effects", Json::array()}};
  if (unit.answer) json["logit_difference"] = *unit.answer;
  for (const InterventionEffect& effect : unit.effects) json["effects"].push_back(to_json(effect));
  return json;
}

InterventionUnit intervention_unit_from(const Json& json) {
  InterventionUnit unit{
      json.at("arms").get<std::vector<std::size_t>>(), number_in(json, "native"), {}, answer_in(json)};
  unit.effects = effects_from(json.at("effects"), unit.arms.size());
  return unit;
}

Json to_json(const InterventionRun& run) {
  Json arms = Json::array();
  for (std::size_t i = 0; i < run.arms.size(); ++i) arms.push_back(to_json(run.arms[i], run.effects[i]));
  Json json = {{"format", intervention_run_format},
               {"version", intervention_run_version},
               {"request", run.request},
               {"asked", run.asked},
               {"native", run.native},
               {"arms", arms}};
  if (!run.native_answers.empty()) json["native_logit_difference"] = run.native_answers;
  return json;
}

void write_intervention_run(const fs::path& folder, const InterventionRun& run) {
  store_result(folder, intervention_form, to_json(run));
}

InterventionRun read_intervention_run(const fs::path& folder, Proof proof) {
  return read_result(folder, intervention_form, proof, [](const Json& json) {
    InterventionRun run;
    run.request = json.at("request");
    run.asked = json.at("asked").get<std::size_t>();
    run.native = json.at("native").get<std::vector<double>>();
    if (json.contains("native_logit_difference")) {
      run.native_answers = json.at("native_logit_difference").get<std::vector<double>>();
      CHECK(run.native_answers.size() == run.documents(), "it needs {} logit differences", run.documents());
    }
    for (const Json& arm : json.at("arms")) {
      InterventionArm& read = run.arms.emplace_back();
      read.text = arm.at("intervention").get<std::string>();
      if (arm.contains("control")) read.control = arm.at("control").get<std::size_t>();
      read.no_control = arm.value("no_control", std::string());
      run.effects.push_back(effects_from(arm.at("documents"), run.documents()));
    }
    for (const std::vector<InterventionEffect>& documents : run.effects) {
      for (const InterventionEffect& effect : documents)
        CHECK(effect.answer.has_value() != run.native_answers.empty(), "an effect with another question");
    }
    for (const InterventionArm& arm : run.arms)
      CHECK(!arm.control || *arm.control < run.arms.size(), "a control that is not there");
    CHECK(run.asked >= 1 && run.asked <= run.arms.size() && run.documents() >= 1, "no interventions or no documents");
    return run;
  });
}

std::string name_of_model(const std::filesystem::path& model) {
  std::string name = (model.has_filename() ? model : model.parent_path()).filename().string();
  for (const std::string_view extension : {".gguf", ".safetensors"}) {
    if (name.size() > extension.size() && name.ends_with(extension)) name.erase(name.size() - extension.size());
  }
  return name;
}

std::string names_text(const InterventionNames& names) {
  return json_text({{"model", names.model}, {"text", names.text}, {"clean", names.clean}, {"corrupt", names.corrupt}},
                   2) +
         "\n";
}

std::optional<InterventionNames> read_intervention_names(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / intervention_names_file;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  return read_checked(file, [](const Json& json) {
    return InterventionNames{json.at("model").get<std::string>(), json.at("text").get<std::string>(),
                             json.at("clean").get<std::string>(), json.at("corrupt").get<std::string>()};
  });
}

}  // namespace gainlens::runfile
