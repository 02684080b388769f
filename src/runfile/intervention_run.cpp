#include "runfile/intervention_run.h"

#include "core/atomic_file.h"
#include "core/check.h"

#include <cmath>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

constexpr const char* result_name = "intervene.json";

Json to_json(const InterventionEffect& effect) {
  return {{"nll", effect.nll},
          {"site_norm_before", effect.site_norm_before},
          {"site_norm_after", effect.site_norm_after},
          {"largest_logit_change", effect.largest_logit_change}};
}

double number_in(const Json& json, const char* key) {
  const double number = json.at(key).get<double>();
  CHECK(std::isfinite(number), "{} is not finite", key);
  return number;
}

InterventionEffect effect_from(const Json& json) {
  return {number_in(json, "nll"), number_in(json, "site_norm_before"), number_in(json, "site_norm_after"),
          number_in(json, "largest_logit_change")};
}

/// Reads a file by a function of its JSON. Whatever is wrong with it becomes one message with its name.
template <typename Read>
auto read_checked(const fs::path& file, const Read& read) {
  const Json json = read_json_file(file);
  try {
    return read(json);
  } catch (const Json::exception& error) {
    throw_invalid("{}: is damaged ({}); delete it and repeat the command", printable(file.string()),
                  printable(error.what(), 120));
  } catch (const InvalidArgument& error) {
    throw_invalid("{}: is damaged ({}); delete it and repeat the command", printable(file.string()), error.what());
  }
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

fs::path unit_file(const fs::path& folder, std::size_t document, std::int64_t layer) {
  return folder / "units" / fmt::format("document-{}-layer-{}.json", document, layer);
}

void write_unit(const fs::path& file, const InterventionUnit& unit) {
  Json json = {{"native", unit.native}, {"effects", Json::array()}};
  for (const InterventionEffect& effect : unit.effects) json["effects"].push_back(to_json(effect));
  write_file_atomically(file, json_text(json) + "\n");
}

InterventionUnit read_unit(const fs::path& file, std::size_t arms) {
  return read_checked(file, [&](const Json& json) {
    return InterventionUnit{number_in(json, "native"), effects_from(json.at("effects"), arms)};
  });
}

void write_intervention_run(const fs::path& folder, const InterventionRun& run) {
  Json arms = Json::array();
  for (std::size_t i = 0; i < run.arms.size(); ++i) arms.push_back(to_json(run.arms[i], run.effects[i]));
  const Json json = {{"format", intervention_run_format},
                     {"version", intervention_run_version},
                     {"request", run.request},
                     {"asked", run.asked},
                     {"native", run.native},
                     {"arms", arms}};
  write_file_atomically(folder / result_name, json_text(json, 1) + "\n");
}

bool is_intervention_run(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_regular_file(folder / "request.json", error)) return false;
  try {
    const Json request = read_json_file(folder / "request.json");
    return request.is_object() && request.value("format", Json()) == intervention_run_format;
  } catch (const InvalidArgument&) {  // a damaged file: who reads another kind of run says so
    return false;
  }
}

InterventionRun read_intervention_run(const fs::path& folder) {
  const fs::path file = folder / result_name;
  CHECK(fs::exists(file), "{}: is not finished; repeat the command that makes it", printable(folder.string()));
  return read_checked(file, [](const Json& json) {
    CHECK(json.at("format") == intervention_run_format && json.at("version") == intervention_run_version,
          "another format or version");
    InterventionRun run;
    run.request = json.at("request");
    run.asked = json.at("asked").get<std::size_t>();
    run.native = json.at("native").get<std::vector<double>>();
    for (const Json& arm : json.at("arms")) {
      InterventionArm& read = run.arms.emplace_back();
      read.text = arm.at("intervention").get<std::string>();
      if (arm.contains("control")) read.control = arm.at("control").get<std::size_t>();
      read.no_control = arm.value("no_control", std::string());
      run.effects.push_back(effects_from(arm.at("documents"), run.documents()));
    }
    for (const InterventionArm& arm : run.arms)
      CHECK(!arm.control || *arm.control < run.arms.size(), "a control that is not there");
    CHECK(run.asked >= 1 && run.asked <= run.arms.size() && run.documents() >= 1, "no interventions or no documents");
    return run;
  });
}

}  // namespace gainlens::runfile
