#include "reports/finetune/run_section.h"

#include "analyses/checks/training_checks.h"
#include "core/counted.h"
#include "core/number_ranges.h"
#include "reports/figures/palette.h"
#include "reports/training/learning_curves_figure.h"
#include "reports/words/checks_table.h"
#include "reports/words/numbers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

const CurveMetric& held_out_loss() {
  static const CurveMetric metric{"loss (nats)", "held-out", "held-out rows", "validation_loss"};
  return metric;
}

/// The finished seeds of one arm at one level.
LabelledCurves loss_curves_of(const runfile::ExperimentRun& run, std::size_t arm, std::size_t style) {
  LabelledCurves found{printable(run.arms[arm], 60), {}, style};
  for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
    const auto& result = run.result(arm, seed);
    if (!result) continue;
    const auto curve = [&](const std::string& name) {
      const auto values = result->curve.find(name);
      return values == result->curve.end() ? std::vector<double>() : values->second;
    };
    found.curves.push_back(
        {run.seeds[seed], curve("validation_loss"), result->best_epoch, curve(runfile::training_loss)});
  }
  return found;
}

/// All arms in as few figures as can be told apart.
std::vector<std::vector<LabelledCurves>> loss_figures_of(const runfile::ExperimentRun& run) {
  std::vector<std::vector<LabelledCurves>> figures;
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    if (figures.empty() || figures.back().size() == max_runs) figures.emplace_back();
    figures.back().push_back(loss_curves_of(run, arm, figures.back().size()));
  }
  return figures;
}

std::vector<Block> loss_blocks(std::span<const FinetunedRun> runs) {
  std::vector<Block> blocks;
  for (const std::vector<LabelledCurves>& arms : loss_figures_of(*runs.front().run)) {
    const std::string name =
        blocks.empty() ? std::string("loss-curves") : fmt::format("loss-curves-{}", blocks.size() + 1);
    const Caption caption = {learning_curves_in_words(arms, held_out_loss()),
                             "It shows whether the training ended too early, and from which epoch on the model only "
                             "learns its training rows "
                             "by heart.",
                             "The held-out rows chose the epochs. The loss of focal is weighted, and not that of sft."};
    blocks.emplace_back(
        CaptionedFigure{name, "Loss curves", caption, learning_curves_figure(arms, name, held_out_loss())});
  }
  return blocks;
}

std::vector<CsvTable> loss_csv(const FinetunedRun& run) {
  std::vector<LabelledCurves> all;
  for (const std::vector<LabelledCurves>& arms : loss_figures_of(*run.run))
    all.insert(all.end(), arms.begin(), arms.end());
  CsvTable table = learning_curves_csv(all, held_out_loss());
  table.name = "loss-curves";
  return {table};
}

std::vector<analyses::CheckResult> results_of(const FinetunedRun& run) {
  analyses::CheckedExperiment checked(*run.run);
  // A report refuses a run whose numbers have changed, and reads no checkpoint.
  if (run.unproven.empty()) {
    checked.not_compared = "checkpoints";
    checked.unproven = "a report does not read them, gainlens check does";
  } else {
    checked.unproven = fmt::format("{}", fmt::join(run.unproven, " "));
  }
  return analyses::run_checks(analyses::experiment_checks(), checked);
}

void add_checks_json(const FinetunedRun& run, OrderedJson& summary) {
  summary["checks"] = analyses::to_json(results_of(run)).at("checks");
}

using Runs = std::span<const FinetunedRun>;

/// A value of the request, which an earlier version or another program may have left out; null: it is not there.
Json found(const FinetunedRun& run, const char* pointer) {
  const Json::json_pointer place(pointer);
  const Json& request = run.run->request;
  return request.contains(place) ? request.at(place) : Json();
}

std::string value_in_words(const Json& value) {
  if (value.is_null()) return "";
  return printable(value.is_string() ? value.get<std::string>() : value.dump(), 60);
}

std::string family_of(const FinetunedRun& run) {
  return value_in_words(found(run, "/model/family"));
}

/// See model_of(); empty where the run does not say it.
std::string model_name(const FinetunedRun& run) {
  if (const Json files = found(run, "/model/files"); files.is_object()) {
    for (const auto& [name, checksum] : files.items())
      if (name.ends_with(".gguf")) return printable(name, 60);
  }
  return family_of(run);
}

/// "model.safetensors 0123456789ab", of the first file, and how many more there are.
std::string weights_in_words(const FinetunedRun& run) {
  const Json files = found(run, "/model/files");
  if (!files.is_object() || files.empty()) return "";
  const auto first = files.begin();
  const std::string text =
      fmt::format("{} {}", printable(first.key(), 60), first->is_string() ? short_checksum(*first) : std::string("–"));
  return files.size() == 1 ? text : fmt::format("{}, and {} more", text, counted(files.size() - 1, "file"));
}

std::string rows_in_words(const FinetunedRun& run) {
  const std::string training = value_in_words(found(run, "/data/training")),
                    validation = value_in_words(found(run, "/data/validation")),
                    test = value_in_words(found(run, "/data/test"));
  if (training.empty() || validation.empty() || test.empty()) return "";
  return fmt::format("{} to learn from, {} to choose the best epoch by, {} to test on{}", training, validation, test,
                     run.levels.selection_units > 0
                         ? fmt::format(", of which the first {} choose too", run.levels.selection_units)
                         : "");
}

std::string trained_in_words(const FinetunedRun& run) {
  const Json training = found(run, "/training"), lora = found(run, "/training/lora");
  if (!training.is_object()) return "";
  if (!lora.is_object()) return "all weights";
  std::vector<std::string> targets;
  if (const Json names = found(run, "/training/lora/targets"); names.is_array())
    for (const Json& name : names) targets.push_back(value_in_words(name));
  return fmt::format("an adapter (LoRA) of rank {}, alpha {}, of {}", value_in_words(found(run, "/training/lora/rank")),
                     value_in_words(found(run, "/training/lora/alpha")), fmt::join(targets, ", "));
}

std::size_t finished_of(const runfile::ExperimentRun& run) {
  return static_cast<std::size_t>(std::ranges::count_if(run.results, [](const auto& result) { return !!result; }));
}

PaperTable run_table(const FinetunedRun& run) {
  const runfile::ExperimentRun& read = *run.run;
  PaperTable table{"run",
                   "What was run. A checksum is the first twelve digits of the SHA-256 of the weights or of the split.",
                   {{"", true}, {"this run", true, true}},
                   {}};
  const auto add = [&](const char* what, const std::string& value) {
    if (!value.empty()) table.rows.push_back({what, value});
  };
  const auto add_setting = [&](const char* what, const char* pointer) {
    add(what, value_in_words(found(run, pointer)));
  };
  add("model", model_name(run));
  if (const std::string family = family_of(run); family != model_name(run)) add("family", family);
  add("weights", weights_in_words(run));
  add("data set", printable(run.levels.data_set, 60));
  add_setting("task", "/data/task");
  add("rows", rows_in_words(run));
  add("split", short_checksum(read.split()));
  add("wrong words of training answers", fmt::format("{}%", fmt::join(run.levels.levels, "%, ")));
  add("arms", arms_in_words(run));
  add("seeds", number_ranges(read.seeds, " to "));
  add("trainings finished", fmt::format("{} of {}", finished_of(read), read.results.size()));
  add("what is trained", trained_in_words(run));
  add_setting("epochs", "/training/epochs");
  add_setting("rows of a step", "/training/batch");
  add_setting("learning rate", "/training/learning_rate");
  add_setting("computed in", "/training/dtype");
  const std::string processes = value_in_words(found(run, "/processes"));
  add("processes of a training", processes.empty() ? "1" : processes);
  add_setting("threads of a process", "/threads");
  add("files", run.unproven.empty() ? "run.h5, its request and the results of all trainings say the same"
                                    : fmt::format("{}", fmt::join(run.unproven, " ")));
  return table;
}

PaperTable settings_table(const FinetunedRun& run) {
  PaperTable table{
      "settings", "All settings of the training.", {{"setting", true, true}, {"this run", true, true}}, {}};
  const Json training = found(run, "/training");
  if (!training.is_object()) return table;
  for (const auto& [key, value] : training.items())
    table.rows.push_back({printable(key, 60), printable(value.is_string() ? value.get<std::string>() : value.dump())});
  return table;
}

std::vector<Block> run_blocks(Runs runs) {
  std::vector<Block> all{run_table(runs.front())};
  PaperTable settings = settings_table(runs.front());
  if (!settings.rows.empty()) {
    all.emplace_back(FoldStart{"All settings of the training"});
    all.emplace_back(std::move(settings));
    all.emplace_back(FoldEnd{});
  }
  return all;
}

void add_run_json(const FinetunedRun& run, OrderedJson& summary) {
  const runfile::ExperimentRun& read = *run.run;
  const Json processes = found(run, "/processes");
  summary["run"] = {{"model", found(run, "/model")},
                    {"data", found(run, "/data")},
                    {"noise", run.levels.levels},
                    {"arms", run.levels.arms},
                    {"seeds", read.seeds},
                    {"trainings", read.results.size()},
                    {"trainings_finished", finished_of(read)},
                    {"training", found(run, "/training")},
                    {"processes", processes.is_null() ? Json(1) : processes},
                    {"threads", found(run, "/threads")},
                    {"unproven", run.unproven}};
}

}  // namespace

const Section<FinetunedRun> finetuned_loss_section = {.name = "loss",
                                                      .title = "Loss curves",
                                                      .question = "Were the arms trained to their end?",
                                                      .files = {"loss-curves"},
                                                      .blocks = loss_blocks,
                                                      .tables = loss_csv};

const Section<FinetunedRun> finetuned_checks_section = {
    .name = "checks",
    .title = "Checks",
    .question = "Is something wrong with the trainings, and what can one do?",
    .files = {"checks"},
    .keys = {"checks"},
    .blocks =
        [](std::span<const FinetunedRun> runs) { return std::vector<Block>{checks_table(results_of(runs.front()))}; },
    .add_json = add_checks_json};

std::string model_of(const FinetunedRun& run) {
  const std::string name = model_name(run);
  return name.empty() ? "a model" : name;
}

std::string arms_in_words(const FinetunedRun& run) {
  std::vector<std::string> arms;
  for (const std::string& arm : run.levels.arms) arms.push_back(printable(arm, 60));
  return fmt::format("{}", fmt::join(arms, ", "));
}

const Section<FinetunedRun> finetuned_run_section = {
    .name = "run",
    .title = "What was run",
    .question = "Which model, which data, which settings, and what of it is proven?",
    .files = {"run", "settings"},
    .keys = {"run"},
    .blocks = run_blocks,
    .add_json = add_run_json};

}  // namespace gainlens::reports
