#include "analyses/checks/training_checks.h"
#include "core/number_ranges.h"
#include "reports/page/typography.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/recommend/run_sections.h"
#include "reports/words/checks_table.h"
#include "reports/words/numbers.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

std::vector<Block> run_files_blocks(TrainedRuns runs) {
  return {Html{fmt::format(
      "<p>Beside this page lie every figure as SVG, PDF and PNG, every number in <code>summary.json</code> and "
      "<code>tables/*.csv</code>, and every table of this page as LaTeX in <code>tables/*.tex</code>. The paper is "
      "<cite>Precision Tracked Transformer via Kalman Filtering, Kriging and Process Noise</cite> (Long, Agarwal, "
      "Markovic-Voronov, Wang, Li). All numbers come from <code>run.h5</code>: the ranks of the test items, and the "
      "learning curves. The SHA-256 of the split begins with <code>{}</code>; <code>summary.json</code> has the "
      "whole.</p>\n",
      escape_html(short_checksum(runs.front().run().split())))}};
}

/// A report refuses a run whose files have changed.
std::vector<analyses::CheckResult> results_of(const TrainedRun& trained) {
  return analyses::run_checks(analyses::recommender_checks(), analyses::CheckedRecommenders(trained.run()));
}

void add_run_checks_json(const TrainedRun& trained, OrderedJson& summary) {
  summary["checks"] = analyses::to_json(results_of(trained)).at("checks");
}

using Row = std::vector<std::string>;

/// A setting of the run beside that of the preset; null where one of them does not have it.
struct Setting {
  std::string key;
  Json value, preset;
  bool differs() const { return value != preset; }
};

/// Every setting of the training, by name.
std::vector<Setting> settings_of(const TrainedRun& trained) {
  const Json& training = trained.run().request.at("training");
  std::vector<Setting> settings;
  for (const auto& [key, value] : training.items()) settings.push_back({key, value, trained.preset.value(key, Json())});
  for (const auto& [key, value] : trained.preset.items()) {
    if (!training.contains(key)) settings.push_back({key, Json(), value});
  }
  return settings;
}

std::vector<Setting> different_settings(const TrainedRun& trained) {
  std::vector<Setting> settings = settings_of(trained);
  std::erase_if(settings, [](const Setting& setting) { return !setting.differs(); });
  return settings;
}

std::string value_in_words(const Json& value) {
  if (value.is_null()) return "–";
  return printable(value.is_string() ? value.get<std::string>() : value.dump(), 60);
}

std::string settings_in_words(const TrainedRun& trained) {
  std::string text;
  for (const Setting& setting : different_settings(trained))
    text += fmt::format("{}{} {} instead of {}", text.empty() ? "" : ", ", printable(setting.key, 60),
                        value_in_words(setting.value), value_in_words(setting.preset));
  return text.empty() ? "those of the preset paper" : "those of the preset paper, but " + text;
}

std::string seeds_of(const analyses::ArmResult& arm) {
  std::string text = arm.finished.empty() ? "no seed is finished" : number_ranges(arm.finished, " to ");
  if (!arm.missing.empty()) text += "; not finished: " + number_ranges(arm.missing, " to ");
  return arm.finished.empty() || arm.trained ? text : text + "; no training";
}

/// The trainings that have diverged; empty: none.
std::string diverged_in_words(const runfile::RecommendRun& run) {
  std::string text;
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    const auto& result = run.results[i];
    const std::string why = result ? runfile::divergence_of(*result, std::ssize(run.item_train_count)) : std::string();
    if (!why.empty())
      text += fmt::format("{}{} seed {}: {}", text.empty() ? "" : "; ", run.arms[i / run.seeds.size()],
                          run.seeds[i % run.seeds.size()], why);
  }
  return text;
}

PaperTable facts_table(const TrainedRun& trained) {
  const runfile::RecommendRun& run = trained.run();
  const Json& data = run.request.at("data");
  PaperTable table{"run",
                   "What was trained. The checksum is the first twelve digits of the SHA-256 of the split.",
                   {{"", true}, {"this run", true}},
                   {}};
  const auto add = [&](const std::string& what, const std::string& value) { table.rows.push_back({what, value}); };
  add("backbone", backbone_title(run.backbone()));
  add("data set", printable(run.data_name(), 60));
  add("users", std::to_string(run.units.size()));
  add("items", std::to_string(run.item_train_count.size()));
  add("interactions", std::to_string(data.at("interactions").get<std::int64_t>()));
  add("split", short_checksum(run.split()));
  for (const analyses::ArmResult& arm : trained.results.arms) add("seeds of " + arm.name, seeds_of(arm));
  add("trainings finished", fmt::format("{} of {}", trained.results.finished(), run.results.size()));
  if (const std::string diverged = diverged_in_words(run); !diverged.empty()) add("diverged", diverged);
  add("settings", settings_in_words(trained));
  return table;
}

PaperTable settings_table(const TrainedRun& trained) {
  PaperTable table{"settings",
                   "The settings of the training, and those of the preset paper.",
                   {{"setting", true}, {"this run"}, {"preset paper"}},
                   {}};
  for (const bool differs : {true, false}) {
    const std::size_t heading = table.rows.size();
    for (const Setting& setting : settings_of(trained)) {
      if (setting.differs() == differs)
        table.rows.push_back(
            {printable(setting.key, 60), value_in_words(setting.value), value_in_words(setting.preset)});
    }
    if (table.rows.size() > heading)
      table.rows.insert(table.rows.begin() + static_cast<std::ptrdiff_t>(heading),
                        Row{differs ? "other than the preset" : "as in the preset"});
  }
  return table;
}

std::vector<Block> run_facts_blocks(TrainedRuns runs) {
  const TrainedRun& trained = runs.front();
  return {facts_table(trained), FoldStart{"All settings of the training"}, settings_table(trained), FoldEnd{}};
}

void add_run_facts_json(const TrainedRun& trained, OrderedJson& summary) {
  const runfile::RecommendRun& run = trained.run();
  OrderedJson& json = summary["run"];
  json = {{"backbone", run.backbone()},
          {"data", run.request.at("data")},
          {"arms", run.arms},
          {"seeds", run.seeds},
          {"trainings", run.results.size()},
          {"trainings_finished", trained.results.finished()},
          {"training", run.request.at("training")},
          {"other_than_preset", OrderedJson::object()}};
  if (const std::string diverged = diverged_in_words(run); !diverged.empty()) json["diverged"] = diverged;
  for (const Setting& setting : different_settings(trained))
    json["other_than_preset"][setting.key] = {{"run", setting.value}, {"preset", setting.preset}};
}

}  // namespace

const Section<TrainedRun> run_files_section = {
    .name = "files",
    .title = "Files",
    .question = "Which files lie beside the page, and from which was it made?",
    .blocks = run_files_blocks};

const Section<TrainedRun> run_checks_section = {
    .name = "checks",
    .title = "Checks",
    .question = "Is something wrong with the trainings, and what can one do?",
    .files = {"checks"},
    .keys = {"checks"},
    .blocks = [](TrainedRuns runs) { return std::vector<Block>{checks_table(results_of(runs.front()))}; },
    .add_json = add_run_checks_json};

const Section<TrainedRun> run_facts_section = {.name = "run",
                                               .title = "What was trained",
                                               .question = "Which model, which data, which settings?",
                                               .files = {"run", "settings"},
                                               .keys = {"run"},
                                               .blocks = run_facts_blocks,
                                               .add_json = add_run_facts_json};

}  // namespace gainlens::reports
