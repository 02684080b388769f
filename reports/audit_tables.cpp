#include "reports/paper_tables.h"
#include "reports/run_rows.h"
#include "reports/shown.h"

#include <algorithm>

namespace gainlens::reports {

PaperTable lemma_paper_table(const Report& report) {
  PaperTable table{"sink-lemma",
                   "The sink lemma, alpha_1 ≥ 1 − (delta + epsilon)/(mu c), at the heads where its bound is largest: "
                   "epsilon = norm of the "
                   "value of key 0, mu = "
                   "smallest norm of another, c = alignment of the others, delta = norm of the estimate. Vacuous: "
                   "queries whose bound is "
                   "not above 0. With K: "
                   "the bound with the gained estimate in place of delta, and the queries whose alpha_1 lies below it.",
                   {{"layer"},
                    {"head"},
                    {"epsilon"},
                    {"mu"},
                    {"c"},
                    {"delta"},
                    {"bound"},
                    {"alpha_1"},
                    {"slack"},
                    {"least slack"},
                    {"vacuous"},
                    {"bound with K"},
                    {"below it"}},
                   {}};
  constexpr std::size_t most = 8;
  add_runs(table, report, [&](const Results& run) {
    if (!run.audit.lemma) return;
    std::vector<analyses::LemmaHead> heads = run.audit.lemma->heads;
    std::erase_if(heads, [](const analyses::LemmaHead& head) { return head.set_apart; });
    std::stable_sort(heads.begin(), heads.end(), [](const auto& a, const auto& b) { return a.bound > b.bound; });
    for (std::size_t i = 0; i < std::min(most, heads.size()); ++i) {
      const analyses::LemmaHead& head = heads[i];
      table.rows.push_back({std::to_string(head.layer), std::to_string(head.head), shown(head.first_norm),
                            shown(head.min_norm), shown(head.alignment), shown(head.estimate_norm), shown(head.bound),
                            shown(head.bos_mass), shown(head.slack), shown(head.slack_min),
                            fmt::format("{:.1f}%", 100 * head.vacuous), shown(head.gain_bound),
                            fmt::format("{:.1f}%", 100 * head.gain_violated)});
    }
  });
  return table;
}

PaperTable prior_shares_paper_table(const Report& report) {
  PaperTable table{"prior-shares",
                   "The prior's share of S + nu sigma0^2 in groups of heads by n_eff: as printed, where it does not "
                   "fade, and as a prior "
                   "that counts as nu observations.",
                   {{"heads"}, {"n_eff (keys)"}, {"S"}, {"share as printed"}, {"share of nu observations"}},
                   {}};
  add_runs(table, report, [&](const Results& run) {
    if (!run.audit.prior_shares) return;
    for (const analyses::PriorShare& group : *run.audit.prior_shares) {
      table.rows.push_back({std::to_string(group.heads), shown(group.n_eff), shown(group.residual),
                            shown_percent(group.share), shown_percent(group.fading)});
    }
  });
  return table;
}

PaperTable statements_paper_table(const Report& report) {
  PaperTable table{
      "statements",
      "Statements of the paper that are false as printed or hang on the model, beside what a run shows of them.",
      {{"the paper's statement", true}, {"this run", true}, {"instead", true}, {"outcome", true}},
      {}};
  if (report.runs.size() > 1) table.columns[1].heading = "the runs";
  // every run has the same statements: one row for each, with what each run says of it
  for (std::size_t i = 0; i < report.runs.front().audit.statements.size(); ++i) {
    const analyses::Statement& statement = report.runs.front().audit.statements[i];
    table.rows.push_back({statement.claim,
                          of_each(report, [&](const Results& run) { return run.audit.statements.at(i).finding; }),
                          of_each(report, [&](const Results& run) { return run.audit.statements.at(i).conclusion; }),
                          of_each(report, [&](const Results& run) {
                            return std::string(analyses::name_of(run.audit.statements.at(i).outcome));
                          })});
  }
  return table;
}

}  // namespace gainlens::reports
