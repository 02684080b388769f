#include "reports/training/language_report.h"

#include "core/counted.h"
#include "reports/page/page_style.h"
#include "reports/page/table.h"
#include "reports/page/typography.h"
#include "reports/section.h"
#include "reports/training/loss_curve_figure.h"
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
  PaperTable checks = checks_table();
  checks.rows = checks_rows(analyses::run_checks(analyses::language_checks(), training));
  return {CaptionedFigure{"loss-curve",
                          "Loss by step",
                          {"The loss of the training text and of held-out text; the best evaluation is marked. The "
                           "checkpoint holds its weights.",
                           "It shows whether the training ended too early, and from when on the model learned its "
                           "training text by heart.",
                           "The held-out text chose the evaluation, so its best loss is a little too low."},
                          loss_curve_of(training)},
          paper_table(evaluations_of(training)), checks};
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
