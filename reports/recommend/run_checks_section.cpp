#include "analyses/checks/training_checks.h"
#include "reports/recommend/run_sections.h"
#include "reports/words/checks_table.h"

namespace gainlens::reports {
namespace {

/// A report refuses a run whose files have changed.
std::vector<analyses::CheckResult> results_of(const TrainedRun& trained) {
  return analyses::run_checks(analyses::recommender_checks(), analyses::CheckedRecommenders(trained.run()));
}

std::vector<Block> run_checks_blocks(TrainedRuns runs) {
  PaperTable table = checks_table();
  table.rows = checks_rows(results_of(runs.front()));
  return {std::move(table)};
}

void add_run_checks_json(const TrainedRun& trained, OrderedJson& summary) {
  summary["checks"] = analyses::to_json(results_of(trained)).at("checks");
}

}  // namespace

const Section<TrainedRun> run_checks_section = {
    .name = "checks",
    .title = "Checks",
    .question = "Is something wrong with the trainings, and what can one do?",
    .files = {"checks"},
    .keys = {"checks"},
    .blocks = run_checks_blocks,
    .add_json = add_run_checks_json};

}  // namespace gainlens::reports
