#include "analyses/checks/training_checks.h"
#include "reports/finetune/run_section.h"
#include "reports/words/checks_table.h"

#include <fmt/ranges.h>

namespace gainlens::reports {
namespace {

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

std::vector<Block> checks_blocks(std::span<const FinetunedRun> runs) {
  PaperTable table = checks_table();
  table.rows = checks_rows(results_of(runs.front()));
  return {std::move(table)};
}

void add_checks_json(const FinetunedRun& run, OrderedJson& summary) {
  summary["checks"] = analyses::to_json(results_of(run)).at("checks");
}

}  // namespace

const Section<FinetunedRun> finetuned_checks_section = {
    .name = "checks",
    .title = "Checks",
    .question = "Is something wrong with the trainings, and what can one do?",
    .files = {"checks"},
    .keys = {"checks"},
    .blocks = checks_blocks,
    .add_json = add_checks_json};

}  // namespace gainlens::reports
