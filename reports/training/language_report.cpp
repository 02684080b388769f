#include "reports/training/language_report.h"

#include "core/check.h"
#include "core/counted.h"
#include "reports/figures/plot_script.h"
#include "reports/page/page_style.h"
#include "reports/page/table.h"
#include "reports/page/typography.h"
#include "reports/section.h"
#include "reports/words/checks_table.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::LanguageTraining;

/// What the report is about.
struct ReadTraining {
  const LanguageTraining* training;
  std::string name;

  const std::string& label() const { return name; }
};

Measured stored_loss(double stored) {
  return std::isfinite(stored) ? Measured(stored) : Measured::none("history.csv has no number");
}

Table evaluations_of(const LanguageTraining& training) {
  Table table{"loss-curve",
              "The losses at each evaluation, in nats per token: of the training text since the one before it, and of "
              "held-out text.",
              {{.key = "step", .heading = "step", .show = analyses::whole},
               {.key = "training_loss", .heading = "training", .show = analyses::fixed<4>},
               {.key = "validation_loss", .heading = "held out", .show = analyses::fixed<4>}}};
  for (std::size_t i = 0; i < training.step.size(); ++i)
    table.rows.push_back({training.step[i], stored_loss(training.loss[i]), stored_loss(training.held_out[i])});
  return table;
}

Maybe<Figure> loss_curve_of(const LanguageTraining& training) {
  if (training.step.empty()) return Maybe<Figure>::none("there is no evaluation");
  std::vector<LossCurvePoint> points;
  for (std::size_t i = 0; i < training.step.size(); ++i)
    points.push_back({training.step[i], training.loss[i], training.held_out[i]});
  return loss_curve_figure(points, training.step[analyses::best_evaluation(training)]);
}

std::vector<Block> language_blocks(std::span<const ReadTraining> read) {
  const LanguageTraining& training = *read.front().training;
  return {CaptionedFigure{"loss-curve",
                          "Loss by step",
                          {"The loss of the training text and of held-out text; the best evaluation is marked. The "
                           "checkpoint holds its weights.",
                           "It shows whether the training ended too early, and from when on the model learned its "
                           "training text by heart.",
                           "The held-out text chose the evaluation, so its best loss is a little too low."},
                          loss_curve_of(training)},
          paper_table(evaluations_of(training)),
          checks_table(analyses::run_checks(analyses::language_checks(), training))};
}

void add_language_json(const ReadTraining& read, OrderedJson& summary) {
  const LanguageTraining& training = *read.training;
  summary["language_training"] = {
      {"arm", training.arm}, {"steps", training.steps}, {"evaluations", to_json(evaluations_of(training))}};
}

const Section<ReadTraining> language_training_section = {
    .name = "training",
    .title = "Training",
    .question = "Has the model learned?",
    .files = {"loss-curve", "checks"},
    .keys = {"language_training"},
    .blocks = language_blocks,
    .add_json = add_language_json,
    .tables = [](const ReadTraining& read) {
      return std::vector<CsvTable>{csv_table(evaluations_of(*read.training))};
    }};

}  // namespace

Figure loss_curve_figure(const std::vector<LossCurvePoint>& points, std::int64_t best_step) {
  ASSERT(!points.empty(), "a loss curve of no evaluations");
  std::vector<std::vector<double>> rows, best;
  for (const LossCurvePoint& point : points) {
    rows.push_back({static_cast<double>(point.step), point.training_loss, point.validation_loss});
    if (point.step == best_step) best.push_back({static_cast<double>(point.step), point.validation_loss});
  }
  PlotScript script;
  script.data("loss", rows).data("best", best);
  script.value_axis(0, static_cast<double>(points.back().step));
  script.line("set xlabel 'optimiser steps'").line("set ylabel 'loss, nats per token'").line("set key top right");
  script.line("plot $loss using 1:2 with lines lw 1.5 dt 2 lc rgb '{}' title 'training', \\", colour::grey);
  script.line("     $loss using 1:3 with lines lw 2 lc rgb '{}' title 'held out', \\", colour::blue);
  script.line("     $best using 1:2 with points pt 7 ps 0.9 lc rgb '{}' title 'best'", colour::vermillion);
  return {"loss-curve", column_width, 2.4, script.text()};
}

WrittenReport write_language_report(const LanguageTraining& training, const std::string& name,
                                    const std::filesystem::path& out, const Writing& writing) {
  const ReadTraining read[] = {{&training, printable(name)}};
  const Section<ReadTraining>* const sections[] = {&language_training_section};
  MadeReport report = make_report<ReadTraining>(sections, read);
  report.title = page_title(read[0].name);
  report.header = fmt::format(
      "<header>\n<h1>Has the model learned?</h1>\n<p class=\"lead\">The training of {}, arm {}: "
      "{}.</p>\n</header>\n",
      escape_html(read[0].name), escape_html(training.arm), counted(training.steps, "step"));
  return write_files(report, out, writing);
}

}  // namespace gainlens::reports
