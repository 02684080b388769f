#include "reports/recommend/run_sections.h"

#include "reports/page/typography.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/words/numbers.h"

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

}  // namespace

const Section<TrainedRun> run_files_section = {
    .name = "files",
    .title = "Files",
    .question = "Which files lie beside the page, and from which was it made?",
    .blocks = run_files_blocks};

}  // namespace gainlens::reports
