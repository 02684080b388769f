#include "reports/recommend/run_sections.h"

#include "reports/recommend/paper_numbers.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

using analyses::ArmResult;
using analyses::PaperGain;

/// mrr@10 is in the CSV file alone: few papers print it.
bool is_shown(const RankingMetric& metric) {
  return metric != RankingMetric{RankingMetric::Kind::reciprocal_rank, 10};
}

const PaperGain* paper_of(const TrainedRun& trained, const RankingMetric& metric) {
  return analyses::find_paper_gain(trained.run().backbone(), trained.results.paper.data_set, metric.name());
}

bool paper_has(const TrainedRun& trained) {
  return std::any_of(ranking_metrics().begin(), ranking_metrics().end(),
                     [&](const RankingMetric& metric) { return paper_of(trained, metric) != nullptr; });
}

std::vector<std::string> arm_row(const ArmResult& arm) {
  const std::size_t seeds = arm.finished.size() + arm.missing.size();
  std::vector<std::string> row = {
      arm.name, arm.missing.empty() ? std::to_string(seeds) : fmt::format("{} of {}", arm.finished.size(), seeds)};
  for (std::size_t i = 0; i < arm.test.size(); ++i) {
    if (is_shown(ranking_metrics()[i])) row.push_back(metric_number(arm.test[i].over_seeds, arm.trained));
  }
  return row;
}

std::vector<std::string> paper_row(const TrainedRun& trained, const std::string& name, double PaperGain::*mean,
                                   double PaperGain::*deviation) {
  std::vector<std::string> row = {name, "20"};
  for (const RankingMetric& metric : ranking_metrics()) {
    if (!is_shown(metric)) continue;
    const PaperGain* const paper = paper_of(trained, metric);
    row.push_back(paper == nullptr ? "–" : metric_number(paper->*mean, paper->*deviation));
  }
  return row;
}

PaperTable metrics_table(const TrainedRun& trained) {
  const runfile::RecommendRun& run = trained.run();
  PaperTable table{"test-metrics",
                   fmt::format("{} on {}: metrics on the test items, each ranked among the whole catalogue. Mean "
                               "(standard deviation) over seeds.",
                               backbone_title(run.backbone()), printable(run.data_name(), 60)),
                   {{"arm", true}, {"seeds"}},
                   {}};
  const auto& arms = trained.results.arms;
  if (std::any_of(arms.begin(), arms.end(), [](const ArmResult& arm) { return !arm.trained && !arm.finished.empty(); }))
    table.caption += " An arm without training is the same with every seed, so it has no deviation.";
  for (const RankingMetric& metric : ranking_metrics()) {
    if (is_shown(metric)) table.columns.push_back({metric.title()});
  }
  for (const ArmResult& arm : arms) table.rows.push_back(arm_row(arm));
  if (!paper_has(trained)) return table;
  table.caption += fmt::format(" Rows called paper: what the paper prints of the backbone alone and with BFT for {}.",
                               in_words(trained.results.paper));
  table.rows.push_back(paper_row(trained, "paper", &PaperGain::baseline, &PaperGain::baseline_deviation));
  table.rows.push_back(paper_row(trained, "paper, BFT", &PaperGain::candidate, &PaperGain::candidate_deviation));
  return table;
}

std::vector<Block> blocks(TrainedRuns runs) {
  return {metrics_table(runs.front())};
}

void add_json(const TrainedRun& trained, OrderedJson& summary) {
  summary["arms"] = OrderedJson::object();
  for (const ArmResult& arm : trained.results.arms) summary["arms"][arm.name] = to_json(arm);
  if (!paper_has(trained)) {
    summary["paper"] = nullptr;
    summary["paper_reason"] = "the paper prints nothing of this backbone on data of this size";
    return;
  }
  summary["paper"] = OrderedJson::object();
  for (const RankingMetric& metric : ranking_metrics()) {
    const PaperGain* const paper = paper_of(trained, metric);
    if (paper == nullptr) continue;
    summary["paper"][metric.name()] = {{"data_set", paper->data_set},
                                       {"baseline_mean", paper->baseline},
                                       {"baseline_deviation", paper->baseline_deviation},
                                       {"bft_mean", paper->candidate},
                                       {"bft_deviation", paper->candidate_deviation}};
  }
}

/// One row for each arm and finished seed.
std::vector<CsvTable> tables(const TrainedRun& trained) {
  CsvTable table{"test-metrics", {"arm", "seed", "epochs", "best_epoch"}, {}};
  for (const RankingMetric& metric : ranking_metrics()) table.header.push_back(metric.name());
  for (const ArmResult& arm : trained.results.arms) {
    for (std::size_t seed = 0; seed < arm.finished.size(); ++seed) {
      std::vector<Cell> row = {arm.name, std::to_string(arm.finished[seed]), arm.epochs[seed], arm.best_epochs[seed]};
      for (const analyses::SeedValues& values : arm.test) row.emplace_back(values.by_seed[seed]);
      table.rows.push_back(std::move(row));
    }
  }
  return {table};
}

std::vector<std::string> files() {
  return {"test-metrics"};
}

}  // namespace

const Section<TrainedRun>& test_metrics_section() {
  static const Section<TrainedRun> section = {.name = "test-metrics",
                                              .title = "Test metrics",
                                              .question = "How well does each arm recommend?",
                                              .files = files,
                                              .keys = {"arms", "paper"},
                                              .blocks = blocks,
                                              .add_json = add_json,
                                              .tables = tables};
  return section;
}

}  // namespace gainlens::reports
