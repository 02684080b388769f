#include "analyses/checks/sweep_checks.h"
#include "reports/sweep/run_words.h"
#include "reports/sweep/sections.h"
#include "reports/words/checks_table.h"

namespace gainlens::reports {
namespace {

using Results = std::vector<analyses::CheckResult>;

/// A report refuses a run whose files have changed.
Results results_of(const SweepRun& run) {
  return analyses::run_checks(analyses::sweep_checks(),
                              analyses::CheckedSweep{run.reader(), run.proof(), {}, run.options()});
}

std::vector<Block> checks_blocks(Runs runs) {
  PaperTable table = checks_table();
  add_runs(table, runs, [&](const SweepRun& run) {
    for (const auto& row : checks_table(run.of(results_of)).rows) table.rows.push_back(row);
  });
  return {std::move(table)};
}

void add_checks_json(const SweepRun& run, OrderedJson& summary) {
  summary["checks"] = analyses::to_json(run.of(results_of)).at("checks");
}

}  // namespace

const Section<SweepRun> checks_section = {.name = "checks",
                                          .title = "Checks",
                                          .question = "Is something wrong with the run, and what can one do?",
                                          .files = {"checks"},
                                          .keys = {"checks"},
                                          .blocks = checks_blocks,
                                          .add_json = add_checks_json};

}  // namespace gainlens::reports
