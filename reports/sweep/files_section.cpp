#include "reports/sweep/sections.h"

#include "reports/page/typography.h"

namespace gainlens::reports {
namespace {

std::vector<Block> files_blocks(Runs runs) {
  std::string html =
      "<p>Beside this page lie every figure as SVG, PDF and PNG, every number in <code>summary.json</code> and "
      "<code>tables/*.csv</code>, and every table of this page as LaTeX in <code>tables/*.tex</code>. The predictions "
      "and statements are those of <cite>Precision Tracked Transformer via Kalman Filtering, Kriging and Process "
      "Noise</cite> (Long, Agarwal, Markovic-Voronov, Wang, Li). The runs were made from files with these "
      "sha256:</p>\n";
  for (const SweepRun& run : runs) {
    if (runs.size() > 1) html += fmt::format("<h3>{}</h3>\n", escape_html(run.label()));
    html += "<dl>\n";
    for (const auto& [file, hash] : run.request().model)
      html += fmt::format("<dt>{}</dt><dd><code>{}</code></dd>\n", escape_html(file), escape_html(hash));
    html += fmt::format("<dt>text</dt><dd><code>{}</code></dd>\n<dt>tokenizer</dt><dd><code>{}</code></dd>\n</dl>\n",
                        escape_html(run.request().text), escape_html(run.request().tokenizer));
  }
  return {Html{html}};
}

}  // namespace

const Section<SweepRun> files_section = {.name = "files",
                                         .title = "Files",
                                         .question = "Which files lie beside the page, and from which was it made?",
                                         .blocks = files_blocks};

}  // namespace gainlens::reports
