#pragma once

#include "reports/page/paper_table.h"
#include "reports/sweep/sweep_run.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace gainlens::reports {

using RunSentence = std::function<std::string(const SweepRun&)>;

/// What each run says, with its label in front where there are several; a run that says nothing is left out. Where all
/// runs say the same, it is said once, without label.
std::string each_run_said(Runs runs, const RunSentence& sentence);
/// The same as sentences of their own: with a capital where no label comes first.
std::string sentences_of(Runs runs, const RunSentence& sentence);

/// A phrase that holds of the runs; a run without one is left out. Once where it is the same, else each with its
/// labels: "1k (plain), 2k (gated, deep)".
std::string runs_said(Runs runs, const RunSentence& phrase);

/// "BOS policy: ...", once where it is the same for all.
std::string bos_sentence(Runs runs);

/// A sentence for captions of overlaid figures; empty for one run.
std::string overlay_sentence(Runs runs);

/// "<b>label.</b> " where there are several runs, else nothing. HTML.
std::string label_html(Runs runs, const SweepRun& run);

/// The labels of several runs; empty for one run, which needs no name.
std::vector<std::string> labels_of(Runs runs);

/// Adds the rows of each run, under its label where there are several.
template <typename AddRows>
void add_runs(PaperTable& table, Runs runs, AddRows add_rows) {
  for (const SweepRun& run : runs) {
    const std::size_t before = table.rows.size();
    add_rows(run);
    if (runs.size() > 1 && table.rows.size() > before)
      table.rows.insert(table.rows.begin() + static_cast<std::ptrdiff_t>(before),
                        std::vector<std::string>{run.label()});
  }
}

/// What log.json says of the last start of the sweep, safe to show; empty where the run's folder does not say it.
struct LastStart {
  std::string model;  ///< name of its file or folder
  std::string text;   ///< name of its file
  std::string time;
  std::string version;  ///< of gainlens
};
LastStart last_start(const SweepRun& run);

/// "gemma-3-270m-q4_k_m", or "weights a5fd3b62230a" of a run without log.json: the first digits of their sha256.
std::string model_name(const SweepRun& run);
/// "wiki.test.txt", or "text 173c87a53759".
std::string text_name(const SweepRun& run);

/// The first twelve digits of a sha256; another text as it is.
std::string short_digest(const std::string& digest);
/// short_digest() of every file of weights.
std::string weights_digest(const SweepRun& run);

}  // namespace gainlens::reports
