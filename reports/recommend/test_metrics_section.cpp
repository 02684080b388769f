#include "reports/recommend/run_sections.h"

#include "analyses/published_results.h"
#include "core/list_metrics.h"
#include "reports/recommend/paper_numbers.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

using analyses::ArmResult;
using analyses::PaperGain;

/// ".4321 (.0012)", "11.20 (.03)": of a share, or of bits.
std::string list_number(const analyses::ArmSummary& values) {
  return values.deviation ? fmt::format("{:.3f} ({:.3f})", values.mean, *values.deviation)
                          : fmt::format("{:.3f}", values.mean);
}

/// Whether seen items were no candidates.
bool ranks_like_the_published(const runfile::RecommendRun& run) {
  const Json& training = run.request.at("training");
  return !training.contains("keep_seen") || training.at("keep_seen") == false;
}

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

/// Means and deviations over the seeds of the metrics of lists, or no row of an arm that has none.
PaperTable lists_table(const TrainedRun& trained) {
  const runfile::RecommendRun& run = trained.run();
  PaperTable table{"list-metrics",
                   "The ten best items of each user at the test. Coverage: share of the catalogue that stands in a "
                   "list. Novelty: how rare the items of the lists are, log2 of all training items over the training "
                   "count of the item, in bits. Popular: share of places with an item of the most frequent fifth. Mean "
                   "(standard deviation) over seeds.",
                   {{"arm", true}, {"coverage@10"}, {"novelty@10 (bits)"}, {"popular@10"}},
                   {}};
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    std::vector<std::string> row = {run.arms[arm]};
    for (const ListMetric& metric : list_metrics()) {
      std::vector<double> values;
      for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
        const auto& result = run.result(arm, seed);
        if (!result) continue;
        const auto value = result->test.find(std::string(metric.name));
        if (value != result->test.end()) values.push_back(value->second);
      }
      if (values.empty()) break;
      row.push_back(list_number(analyses::arm_summary(values)));
    }
    if (row.size() == table.columns.size()) table.rows.push_back(row);
  }
  return table;
}

std::vector<analyses::PublishedResult> published_beside(const runfile::RecommendRun& run) {
  const Json& data = run.request.at("data");
  if (!data.contains("interactions") || !ranks_like_the_published(run)) return {};
  return analyses::published_for(std::ssize(run.units), std::ssize(run.item_train_count),
                                 data.at("interactions").get<std::int64_t>(), run.split());
}

PaperTable published_table(const std::vector<analyses::PublishedResult>& results) {
  PaperTable table{"published",
                   fmt::format("What others have published for data with as many users, items and interactions ({}) "
                               "with the same protocol: the last item of each user ranked among the whole catalogue, "
                               "seen items left out. Mean (standard deviation) over seeds. Split: whether the order of "
                               "interactions at the same time is known to be that of this run.",
                               results.front().data_set),
                   {{"model", true}, {"HR@10"}, {"NDCG@10"}, {"seeds"}, {"split", true}, {"source", true}},
                   {}};
  const auto figure = [](const analyses::PublishedResult::Figure& figure) {
    return figure.deviation ? metric_number(figure.mean, *figure.deviation) : metric_number(figure.mean);
  };
  for (const analyses::PublishedResult& result : results)
    table.rows.push_back({result.model, figure(result.hit), figure(result.gain),
                          result.seeds ? std::to_string(*result.seeds) : "–",
                          result.split.empty() ? "not known" : "the same",
                          fmt::format("{}: {}", result.source, analyses::published_source(result.source).address)});
  return table;
}

std::vector<Block> test_metrics_blocks(TrainedRuns runs) {
  const TrainedRun& trained = runs.front();
  std::vector<Block> all = {metrics_table(trained)};
  const auto published = published_beside(trained.run());
  if (!published.empty()) all.emplace_back(published_table(published));
  if (PaperTable lists = lists_table(trained); !lists.rows.empty()) all.emplace_back(std::move(lists));
  return all;
}

void add_test_metrics_json(const TrainedRun& trained, OrderedJson& summary) {
  summary["arms"] = OrderedJson::object();
  for (const ArmResult& arm : trained.results.arms) summary["arms"][arm.name] = to_json(arm);
  summary["published"] = analyses::to_json(published_beside(trained.run()));
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
std::vector<CsvTable> test_metrics_tables(const TrainedRun& trained) {
  CsvTable table{"test-metrics", {"arm", "seed", "epochs", "best_epoch"}, {}};
  for (const RankingMetric& metric : ranking_metrics()) table.header.push_back(metric.name());
  for (const ListMetric& metric : list_metrics()) table.header.emplace_back(metric.name);
  const runfile::RecommendRun& run = trained.run();
  for (const ArmResult& arm : trained.results.arms) {
    const auto place =
        static_cast<std::size_t>(std::find(run.arms.begin(), run.arms.end(), arm.name) - run.arms.begin());
    for (std::size_t seed = 0; seed < arm.finished.size(); ++seed) {
      std::vector<Cell> row = {arm.name, std::to_string(arm.finished[seed]), arm.epochs[seed], arm.best_epochs[seed]};
      for (const analyses::SeedValues& values : arm.test) row.emplace_back(values.by_seed[seed]);
      const auto seed_place = static_cast<std::size_t>(
          std::find(run.seeds.begin(), run.seeds.end(), arm.finished[seed]) - run.seeds.begin());
      const auto& test = run.result(place, seed_place)->test;
      for (const ListMetric& metric : list_metrics()) {
        const auto value = test.find(std::string(metric.name));
        row.push_back(value == test.end() ? empty_cell() : Cell(value->second));
      }
      table.rows.push_back(std::move(row));
    }
  }
  return {table};
}

}  // namespace

const Section<TrainedRun> test_metrics_section = {.name = "test-metrics",
                                                  .title = "Test metrics",
                                                  .question = "How well does each arm recommend?",
                                                  .files = {"test-metrics", "published", "list-metrics"},
                                                  .keys = {"arms", "paper", "published"},
                                                  .blocks = test_metrics_blocks,
                                                  .add_json = add_test_metrics_json,
                                                  .tables = test_metrics_tables};

}  // namespace gainlens::reports
