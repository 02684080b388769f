#include "runfile/gate_arms_run.h"

#include <algorithm>
#include <functional>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

constexpr ResultForm gate_arms_form = {gate_arms_result, gate_arms_format, gate_arms_version};

std::optional<double> optional_at(const Json& json, const char* key) {
  return json.contains(key) ? std::optional(number_in(json, key)) : std::nullopt;
}

void check_shape(const GateArmsRun& run) {
  CHECK(run.arms.size() >= 2 && run.arms.front() == "native",
        "its first arm must be native, with another one after it");
  CHECK(!run.contexts.empty() && run.contexts.front() >= 1 &&
            std::ranges::adjacent_find(run.contexts, std::ranges::greater_equal()) == run.contexts.end() &&
            std::ranges::find(run.contexts, run.trained_length) != run.contexts.end(),
        "its contexts must ascend and hold the trained length");
  CHECK(run.documents() >= 1, "it has no documents");
}

}  // namespace

Json to_json(const GateArmsPlan& plan) {
  return {{"margin", plan.margin},
          {"fewest_documents", plan.fewest_documents},
          {"resamples", plan.resamples},
          {"power", plan.power},
          {"supported_if", supported_if}};
}

Json to_json(const std::vector<GateArmReading>& contexts) {
  Json json = Json::array();
  for (const GateArmReading& one : contexts) {
    json.push_back({{"nll", one.nll}, {"gate_mean", one.gate_mean}, {"bos_mass", one.bos_mass}, {"n_eff", one.n_eff}});
  }
  return json;
}

std::vector<GateArmReading> readings_from(const Json& json, std::size_t contexts) {
  CHECK(json.is_array() && json.size() == contexts, "it needs readings of {} contexts", contexts);
  std::vector<GateArmReading> readings;
  for (const Json& one : json) {
    readings.push_back(
        {number_in(one, "nll"), number_in(one, "gate_mean"), number_in(one, "bos_mass"), number_in(one, "n_eff")});
  }
  return readings;
}

Json to_json(const std::vector<CalibratedHead>& heads) {
  Json json = Json::array();
  for (const CalibratedHead& head : heads) {
    Json& entry = json.emplace_back(Json{{"layer", head.layer}, {"head", head.head}, {"raw_mean", head.raw_mean}});
    if (head.gate) entry["gate"] = *head.gate;
    if (head.lambda) entry["lambda"] = *head.lambda;
    if (head.gain) entry["gain"] = *head.gain;
    if (head.scale) entry["scale"] = *head.scale;
  }
  return json;
}

std::vector<CalibratedHead> calibration_from(const Json& json) {
  CHECK(json.is_array() && !json.empty(), "it needs the calibration of heads");
  std::vector<CalibratedHead> heads;
  for (const Json& entry : json) {
    heads.push_back({entry.at("layer").get<std::int64_t>(), entry.at("head").get<std::int64_t>(),
                     number_in(entry, "raw_mean"), optional_at(entry, "gate"), optional_at(entry, "lambda"),
                     optional_at(entry, "gain"), optional_at(entry, "scale")});
  }
  return heads;
}

std::string gate_arm_unit(std::size_t document, std::string_view arm) {
  return fmt::format("document-{}-{}", document, arm);
}

Json to_json(const GateArmsRun& run) {
  Json arms = Json::array();
  for (std::size_t i = 0; i < run.arms.size(); ++i) {
    Json documents = Json::array();
    for (const std::vector<GateArmReading>& document : run.readings[i]) documents.push_back(to_json(document));
    arms.push_back({{"arm", run.arms[i]}, {"documents", documents}});
  }
  return {{"format", gate_arms_format},
          {"version", gate_arms_version},
          {"request", run.request},
          {"contexts", run.contexts},
          {"trained_length", run.trained_length},
          {"gated", run.gated},
          {"calibration", to_json(run.calibration)},
          {"arms", arms}};
}

void write_gate_arms_run(const fs::path& folder, const GateArmsRun& run) {
  store_result(folder, gate_arms_form, to_json(run));
}

GateArmsRun read_gate_arms_run(const fs::path& folder, Proof proof) {
  return read_result(folder, gate_arms_form, proof, [](const Json& json) {
    GateArmsRun run;
    run.request = json.at("request");
    run.contexts = json.at("contexts").get<std::vector<std::int64_t>>();
    run.trained_length = json.at("trained_length").get<std::int64_t>();
    run.gated = json.at("gated").get<bool>();
    run.calibration = calibration_from(json.at("calibration"));
    for (const Json& arm : json.at("arms")) {
      run.arms.push_back(arm.at("arm").get<std::string>());
      auto& documents = run.readings.emplace_back();
      for (const Json& document : arm.at("documents"))
        documents.push_back(readings_from(document, run.contexts.size()));
      CHECK(documents.size() == run.documents(), "its arms have different documents");
    }
    check_shape(run);
    return run;
  });
}

}  // namespace gainlens::runfile
