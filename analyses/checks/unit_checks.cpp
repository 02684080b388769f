#include "analyses/checks/unit_checks.h"

#include "core/checked.h"
#include "core/counted.h"
#include "core/json_words.h"
#include "runfile/gate_arms_run.h"
#include "runfile/intervention_run.h"
#include "runfile/patching_run.h"
#include "runfile/run_store.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <utility>

namespace gainlens::analyses {
namespace {

namespace fs = std::filesystem;

/// Of what a unit holds: its document or direction, and its arm or patch.
using Part = std::pair<std::size_t, std::size_t>;

/// "3" and "gain" of "document-3-gain"; nothing: another form.
std::optional<std::pair<std::size_t, std::string>> document_and_rest(std::string_view name) {
  constexpr std::string_view start = "document-";
  if (!name.starts_with(start)) return std::nullopt;
  name.remove_prefix(start.size());
  std::size_t document = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), document);
  const std::string_view rest = name.substr(static_cast<std::size_t>(end - name.data()));
  if (error != std::errc() || !rest.starts_with('-')) return std::nullopt;
  return std::pair(document, std::string(rest.substr(1)));
}

std::size_t count_in(const Json& request, const char* key) {
  const auto count = request.at(key).get<std::int64_t>();
  CHECK(count >= 1, "{} {}", key, count);
  return static_cast<std::size_t>(count);
}

void set_parts(CheckedUnits& found, std::size_t outer, std::size_t inner) {
  found.parts = checked_mul(outer, inner, "request.json: units of the run");
}

/// Reads every unit by `read`, which throws where one does not belong to the run.
template <typename Read>
void each_unit(const runfile::StoredUnits& units, CheckedUnits& found, const Read& read) {
  for (const std::string& name : units.names()) {
    ++found.units;
    try {
      read(name);
    } catch (const InvalidArgument& error) {
      found.damaged.emplace_back(error.what());
    }
  }
}

[[noreturn]] void throw_foreign(const runfile::StoredUnits& units, const std::string& name) {
  throw_invalid("{}: is no unit of this run; delete it", printable(units.file(name).string()));
}

/// Reads the result, and compares it with what `complete` makes of it: the same with the numbers of the units.
template <typename Read, typename Complete>
void compare_result(const fs::path& folder, const Json& request, CheckedUnits& found, const Read& read,
                    const Complete& complete) {
  found.finished = fs::exists(folder / found.result);
  if (!found.finished) return;
  found.without_units = !fs::exists(folder / "units");
  try {
    found.unproven = runfile::prove_store(folder, found.result);
  } catch (const InvalidArgument& error) {
    found.changed = error.what();
  }
  try {
    auto run = read(folder, runfile::Proof::by_caller);
    const Json stored = to_json(run);
    if (found.missing > 0 || !found.damaged.empty()) return;
    run.request = request;
    complete(run);
    const Json differences = Json::diff(stored, to_json(run));
    found.difference = differences.empty() ? "" : differences.front().at("path").template get<std::string>();
  } catch (const InvalidArgument& error) {
    found.unreadable = error.what();
  }
}

void read_gate_arms(const fs::path& folder, const Json& request, CheckedUnits& found) {
  const auto arms = request.at("arms").get<std::vector<std::string>>();
  const auto contexts = request.at("contexts").get<std::vector<std::int64_t>>();
  found.documents = count_in(request, "samples");
  found.fewest_documents = static_cast<std::size_t>(runfile::declared.fewest_documents);
  found.part = "each arm on each document, and the calibration";
  found.result = runfile::gate_arms_result;
  found.as_declared = request.at("declared") == runfile::to_json(runfile::declared);
  set_parts(found, found.documents, arms.size());
  found.parts = checked_add(found.parts, std::size_t{1}, "request.json: units of the run");
  std::vector<runfile::CalibratedHead> calibration;
  std::map<Part, std::vector<runfile::GateArmReading>> readings;
  const runfile::StoredUnits units(folder, request);
  each_unit(units, found, [&](const std::string& name) {
    if (name == runfile::calibration_unit) {
      calibration = units.read(name, runfile::calibration_from);
      return;
    }
    const auto place = document_and_rest(name);
    const auto arm = place ? std::ranges::find(arms, place->second) : arms.end();
    if (arm == arms.end() || place->first >= found.documents) throw_foreign(units, name);
    readings[{place->first, static_cast<std::size_t>(arm - arms.begin())}] =
        units.read(name, [&](const Json& json) { return runfile::readings_from(json, contexts.size()); });
  });
  found.missing = found.parts - readings.size() - (calibration.empty() ? 0 : 1);
  compare_result(folder, request, found, runfile::read_gate_arms_run, [&](runfile::GateArmsRun& run) {
    run.arms = arms;
    run.contexts = contexts;
    run.trained_length = request.at("trained_length").get<std::int64_t>();
    run.calibration = calibration;
    run.gated = !calibration.empty() && calibration.front().gate.has_value();
    run.readings.assign(arms.size(), {});
    for (auto& documents : run.readings) documents.resize(found.documents);
    for (const auto& [part, reading] : readings) run.readings[part.second][part.first] = reading;
  });
}

/// What the units of a run of interventions hold.
struct MeasuredInterventions {
  std::size_t asked = 0;
  std::vector<std::string> texts;                           // those that were asked for, then controls
  std::map<std::size_t, runfile::InterventionUnit> native;  // some unit of each document
  std::map<Part, InterventionEffect> effects;

  /// Gives a run the numbers of these documents.
  void fill(runfile::InterventionRun& run, const std::vector<std::size_t>& documents) const {
    run.asked = asked;
    run.arms.resize(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) run.arms[i].text = texts[i];
    run.native.clear();
    run.native_answers.clear();
    run.effects.assign(texts.size(), {});
    for (const std::size_t document : documents) {
      const runfile::InterventionUnit& unit = native.at(document);
      run.native.push_back(unit.native);
      if (unit.answer) run.native_answers.push_back(*unit.answer);
      for (std::size_t arm = 0; arm < texts.size(); ++arm) run.effects[arm].push_back(effects.at({document, arm}));
    }
  }
  /// The documents on which everything is measured.
  std::vector<std::size_t> whole_documents() const {
    std::map<std::size_t, std::size_t> arms;
    for (const auto& [part, effect] : effects) ++arms[part.first];
    std::vector<std::size_t> whole;
    for (const auto& [document, count] : arms)
      if (count == texts.size()) whole.push_back(document);
    return whole;
  }
};

MeasuredInterventions measured_interventions(const fs::path& folder, const Json& request, CheckedUnits& found) {
  MeasuredInterventions measured;
  std::vector<std::string>& texts = measured.texts;
  texts = request.at("interventions").get<std::vector<std::string>>();
  measured.asked = texts.size();
  for (const Json& text : request.at("controls")) texts.push_back(text.get<std::string>());
  found.documents = count_in(request, "samples");
  found.fewest_documents = 2;
  found.part = "each intervention on each document";
  found.result = runfile::intervention_result;
  set_parts(found, found.documents, texts.size());
  const runfile::StoredUnits units(folder, request);
  each_unit(units, found, [&](const std::string& name) {
    const auto place = document_and_rest(name);
    if (!place || place->first >= found.documents) throw_foreign(units, name);
    const runfile::InterventionUnit unit = units.read(name, runfile::intervention_unit_from);
    for (std::size_t i = 0; i < unit.arms.size(); ++i) {
      if (unit.arms[i] >= texts.size()) throw_foreign(units, name);
      measured.effects[{place->first, unit.arms[i]}] = unit.effects[i];
    }
    measured.native[place->first] = unit;
  });
  found.missing = found.parts - measured.effects.size();
  found.finished = fs::exists(folder / found.result);
  return measured;
}

void read_interventions(const fs::path& folder, const Json& request, CheckedUnits& found) {
  const MeasuredInterventions measured = measured_interventions(folder, request, found);
  compare_result(folder, request, found, runfile::read_intervention_run,
                 [&](runfile::InterventionRun& run) { measured.fill(run, measured.whole_documents()); });
}

void read_patches(const fs::path& folder, const Json& request, CheckedUnits& found) {
  const auto texts = request.at("interventions").get<std::vector<std::string>>();
  found.part = "each patch in each direction";
  found.result = runfile::patching_result;
  set_parts(found, runfile::patch_directions.size(), texts.size());
  std::map<std::size_t, runfile::PatchedPrompt> prompts;  // some unit of each direction
  std::map<Part, runfile::PatchEffect> effects;
  const runfile::StoredUnits units(folder, request);
  each_unit(units, found, [&](const std::string& name) {
    const auto* const direction = std::ranges::find_if(runfile::patch_directions, [&](auto one) {
      return name.starts_with(fmt::format("{}-layer-", runfile::name_of(one)));
    });
    if (direction == runfile::patch_directions.end()) throw_foreign(units, name);
    const auto place = static_cast<std::size_t>(*direction);
    const runfile::PatchingUnit unit = units.read(name, runfile::patching_unit_from);
    for (std::size_t i = 0; i < unit.patches.size(); ++i) {
      if (unit.patches[i] >= texts.size()) throw_foreign(units, name);
      effects[{place, unit.patches[i]}] = unit.prompt.effects[i];
    }
    prompts[place] = unit.prompt;
  });
  found.missing = found.parts - effects.size();
  compare_result(folder, request, found, runfile::read_patching_run, [&](runfile::PatchingRun& run) {
    run.patches.resize(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) run.patches[i].text = texts[i];
    for (auto& [place, prompt] : prompts) {
      prompt.effects.assign(texts.size(), {});
      run.directions[place] = prompt;
    }
    for (const auto& [part, effect] : effects) run.directions[part.first].effects[part.second] = effect;
  });
}

// Checks

CheckOutcome files(const CheckedUnits& run) {
  const std::string all = counted(run.units, "unit");
  constexpr const char* advice = "take no number from this run; what is measured again then continues it";
  if (run.damaged.empty() && !run.changed.empty()) return {run.changed, advice};
  if (run.damaged.empty() && !run.finished) return satisfactory(fmt::format("{} as written (sha256)", all));
  if (run.damaged.empty())
    return satisfactory(run.unproven.empty() ? fmt::format("{} and {} as written (sha256)", run.result, all)
                                             : fmt::format("{} as written (sha256); {}", all, run.unproven));
  const bool none_fits = run.damaged.size() > 1 && run.damaged.size() == run.units &&
                         std::ranges::all_of(run.damaged, [](const std::string& message) {
                           return message.find("or that of another run") != std::string::npos;  // StoredUnits
                         });
  if (none_fits)
    return {fmt::format("none of {} belongs to request.json; it was changed, or is that of another run", all),
            "put the right request.json back"};
  return {fmt::format("{} of {} cannot be used; the first: {}", run.damaged.size(), all, run.damaged.front()), advice};
}

CheckOutcome finished(const CheckedUnits& run) {
  constexpr const char* advice = "repeat the command that makes the run, which measures the rest";
  const std::string parts = fmt::format("{} parts ({})", run.parts, run.part);
  if (run.without_units)
    return satisfactory(fmt::format("{} is there, without the units it was made from", run.result));
  if (run.missing > 0)
    return {fmt::format("{} of {} {} missing or damaged", run.missing, parts, run.missing == 1 ? "is" : "are"), advice};
  if (!run.finished) return {fmt::format("all of {} are measured, and there is no {}", parts, run.result), advice};
  return satisfactory(fmt::format("all of {} are measured", parts));
}

CheckOutcome result(const CheckedUnits& run) {
  const std::string advice = fmt::format("delete {} and repeat the command, which makes it from the units", run.result);
  if (!run.unreadable.empty()) return {run.unreadable, advice};
  if (!run.difference)
    return not_known(fmt::format("whether {} holds what the units hold; units, or it, are missing", run.result));
  if (run.difference->empty()) return satisfactory(fmt::format("{} holds what the units hold", run.result));
  return {fmt::format("{} is not what the units hold, first at {}", run.result, printable(*run.difference, 80)),
          advice};
}

CheckOutcome declared(const CheckedUnits& run) {
  if (!run.as_declared) return satisfactory("a run of intervene declares nothing");
  if (*run.as_declared) return satisfactory("the rule and its numbers are those of this gainlens");
  return {"the run was begun under another rule, or other numbers, than this gainlens declares",
          "do not read its ruling as that of docs/analyses/prediction-3.md; measure again into another folder"};
}

CheckOutcome documents(const CheckedUnits& run) {
  if (run.documents == 0) return satisfactory("two prompts have no documents");
  const std::string there = counted(run.documents, "document");
  if (run.documents >= run.fewest_documents) return satisfactory(there);
  return {fmt::format("{}, and {} are needed", there, run.fewest_documents),
          "measure more --samples into another folder"};
}

/// What all such runs share.
CheckedUnits read_checked_units(const fs::path& folder,
                                const std::function<void(const fs::path&, const Json&, CheckedUnits&)>& read) {
  const fs::path file = folder / "request.json";
  const Json request = read_json_file(file);
  CheckedUnits found;
  try {
    read(folder, request, found);
  } catch (const Json::exception& error) {
    throw_invalid("{}: is damaged ({})", printable(file.string()), json_error_in_words(error));
  } catch (const InvalidArgument& error) {
    throw_invalid("{}: is damaged ({})", printable(file.string()), error.what());
  }
  return found;
}

}  // namespace

CheckedUnits read_checked_gate_arms(const fs::path& folder) {
  return read_checked_units(folder, read_gate_arms);
}

CheckedUnits read_checked_interventions(const fs::path& folder) {
  return read_checked_units(folder, read_interventions);
}

CheckedUnits read_checked_patches(const fs::path& folder) {
  return read_checked_units(folder, read_patches);
}

std::string measured_parts(const CheckedUnits& run) {
  if (run.missing == 0) return fmt::format("all of {} parts ({}) are measured", run.parts, run.part);
  const std::size_t measured = run.parts - run.missing;
  return fmt::format("{} of {} parts ({}) {} measured", measured, run.parts, run.part, measured == 1 ? "is" : "are");
}

BegunInterventions read_begun_interventions(const fs::path& folder) {
  runfile::check_not_being_written(folder);
  BegunInterventions begun;
  begun.units = read_checked_units(folder, [&](const fs::path&, const Json& request, CheckedUnits& found) {
    const MeasuredInterventions measured = measured_interventions(folder, request, found);
    begun.run.request = request;
    measured.fill(begun.run, measured.whole_documents());
  });
  const std::string where = printable(folder.string());
  CHECK(begun.units.damaged.empty(), "{}", begun.units.damaged.front());
  CHECK(begun.run.documents() > 0,
        "{}: is not finished: {}, and no document has all interventions; repeat the command that makes it, which "
        "continues",
        where, measured_parts(begun.units));
  for (const auto& documents : begun.run.effects) {
    for (const InterventionEffect& effect : documents)
      CHECK(effect.answer.has_value() == (begun.run.native_answers.size() == begun.run.documents()),
            "{}: has units with another question; delete {} and repeat the command", where,
            printable((folder / "units").string()));
  }
  for (runfile::InterventionArm& arm : begun.run.arms) arm.no_control = "the run was stopped before its end";
  return begun;
}

std::span<const Check<CheckedUnits>> unit_checks() {
  static constexpr Check<CheckedUnits> checks[] = {
      {"files", "Are the units those that the command wrote?", files},
      {"finished", "Is everything measured?", finished},
      {"result", "Does the result hold what the units hold?", result},
      {"declared", "Is what was declared beforehand that of this gainlens?", declared},
      {"documents", "Are there enough documents for intervals?", documents},
  };
  return checks;
}

}  // namespace gainlens::analyses
