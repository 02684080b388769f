#include "reports/figures/palette.h"
#include "reports/finetune/run_section.h"
#include "reports/training/learning_curves_figure.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

const CurveMetric& held_out_loss() {
  static const CurveMetric metric{"loss (nats)", "held-out", "held-out rows", "validation_loss"};
  return metric;
}

/// The finished seeds of one arm at one level.
LabelledCurves loss_curves_of(const runfile::ExperimentRun& run, std::size_t arm, std::size_t style) {
  LabelledCurves found{printable(run.arms[arm], 60), {}, style};
  for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
    const auto& result = run.result(arm, seed);
    if (!result) continue;
    const auto curve = [&](const std::string& name) {
      const auto values = result->curve.find(name);
      return values == result->curve.end() ? std::vector<double>() : values->second;
    };
    found.curves.push_back(
        {run.seeds[seed], curve("validation_loss"), result->best_epoch, curve(runfile::training_loss)});
  }
  return found;
}

/// All arms in as few figures as can be told apart.
std::vector<std::vector<LabelledCurves>> loss_figures_of(const runfile::ExperimentRun& run) {
  std::vector<std::vector<LabelledCurves>> figures;
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    if (figures.empty() || figures.back().size() == max_runs) figures.emplace_back();
    figures.back().push_back(loss_curves_of(run, arm, figures.back().size()));
  }
  return figures;
}

std::vector<Block> loss_blocks(std::span<const FinetunedRun> runs) {
  std::vector<Block> blocks;
  for (const std::vector<LabelledCurves>& arms : loss_figures_of(*runs.front().run)) {
    const std::string name =
        blocks.empty() ? std::string("loss-curves") : fmt::format("loss-curves-{}", blocks.size() + 1);
    const Caption caption = {learning_curves_in_words(arms, held_out_loss()),
                             "It shows whether the training ended too early, and from which epoch on the model only "
                             "learns its training rows "
                             "by heart.",
                             "The held-out rows chose the epochs. The loss of focal is weighted, and not that of sft."};
    blocks.emplace_back(
        CaptionedFigure{name, "Loss curves", caption, learning_curves_figure(arms, name, held_out_loss())});
  }
  return blocks;
}

std::vector<CsvTable> loss_csv(const FinetunedRun& run) {
  std::vector<LabelledCurves> all;
  for (const std::vector<LabelledCurves>& arms : loss_figures_of(*run.run))
    all.insert(all.end(), arms.begin(), arms.end());
  CsvTable table = learning_curves_csv(all, held_out_loss());
  table.name = "loss-curves";
  return {table};
}

}  // namespace

const Section<FinetunedRun> finetuned_loss_section = {.name = "loss",
                                                      .title = "Loss curves",
                                                      .question = "Were the arms trained to their end?",
                                                      .files = {"loss-curves"},
                                                      .blocks = loss_blocks,
                                                      .tables = loss_csv};

}  // namespace gainlens::reports
