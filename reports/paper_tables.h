#pragma once

#include "reports/paper_table.h"
#include "reports/results.h"

#include <string>
#include <vector>

namespace gainlens::reports {

/// The tables of a report as a paper prints them. A table whose analysis has no result has no rows.

/// runs: what was run, one column for each run.
PaperTable runs_paper_table(const Report& report);
// Of several runs, the tables below have the rows of each run under its label.

/// verdicts: the paper's predictions, the naive and the honest inference, and what the run says.
PaperTable verdicts_paper_table(const Report& report);
/// context: n_eff, gate and lambda_obs by context length, and whether they are flat.
PaperTable context_paper_table(const Report& report);
/// context-by-attention: n_eff and lambda_obs over all layers of each kind of attention; no rows where all are of one
/// kind.
PaperTable context_by_attention_paper_table(const Report& report);
/// neighbours: how alike neighbouring chunks are, and the intervals that allow for it.
PaperTable neighbours_paper_table(const Report& report);
/// gain-theory: K measured and predicted by context length.
PaperTable gain_theory_paper_table(const Report& report);
/// gain-theory-checks: its errors on the same chunks, on other chunks, and head by head.
PaperTable gain_checks_paper_table(const Report& report);
/// sink-vs-k-inference: each correlation with its naive p and what stands beside it.
PaperTable inference_paper_table(const Report& report);
/// sinks: the strongest sink heads.
PaperTable sinks_paper_table(const Report& report);
/// sink-lemma: the lemma at the heads where it binds most.
PaperTable lemma_paper_table(const Report& report);
/// prior-shares: whether the prior fades where n_eff is large.
PaperTable prior_shares_paper_table(const Report& report);
/// statements: statements that are false as printed, beside what the runs show.
PaperTable statements_paper_table(const Report& report);

/// differences: two runs set against each other.
PaperTable differences_paper_table(const Contrast& contrast);
/// run-differences: what two runs do not share.
PaperTable run_differences_paper_table(const Contrast& contrast);

/// Every table of a report, in its order; those of the third and later runs' differences carry the run's number.
std::vector<PaperTable> paper_tables(const Report& report);

}  // namespace gainlens::reports
