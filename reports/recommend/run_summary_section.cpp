#include "reports/recommend/run_sections.h"

#include "analyses/gain_decisions.h"
#include "core/counted.h"
#include "core/number_ranges.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/recommend/stratum_words.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

using analyses::ArmResult, analyses::PaperGain, analyses::RecommenderResults;

/// "HR@10 .0947 (.0009), NDCG@10 .0572 (.0007), MRR .0518 (.0009)", of the metrics that the strata have too.
std::string metrics_in_words(const RecommenderResults& results, const ArmResult& arm) {
  std::string text;
  for (std::size_t i = 0; i < arm.test.size(); ++i) {
    const RankingMetric& metric = ranking_metrics()[i];
    if (std::find(results.metrics.begin(), results.metrics.end(), metric) == results.metrics.end()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", metric.title(),
                        metric_number(arm.test[i].over_seeds, arm.trained));
  }
  return text;
}

std::string paper_sentence(const RecommenderResults& results) {
  const runfile::RecommendRun& run = *results.run;
  std::string text;
  for (const RankingMetric& metric : results.metrics) {
    const PaperGain* const paper = analyses::find_paper_gain(run.backbone(), results.paper.data_set, metric.name());
    if (paper == nullptr) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", metric.title(),
                        metric_number(paper->baseline, paper->baseline_deviation));
  }
  if (text.empty()) return {};
  return fmt::format("The paper prints {} for this backbone without BFT on {}, over 20 seeds. ", text,
                     results.paper.data_set);
}

std::string results_in_words(const RecommenderResults& results) {
  std::string text = "Test metrics are means over seeds, with their standard deviation in brackets. ";
  for (const ArmResult& arm : results.arms) {
    if (!arm.finished.empty())
      text += fmt::format("{} ({}{}): {}. ", arm.name, counted(arm.finished.size(), "seed"),
                          arm.trained ? "" : ", no training", metrics_in_words(results, arm));
  }
  return text + paper_sentence(results);
}

/// How the first arm does at both ends of the strata of items.
std::string ends_sentence(const RecommenderResults& results) {
  const ArmResult& arm = results.arms.front();
  const auto metric = std::find_if(results.metrics.begin(), results.metrics.end(),
                                   [](const RankingMetric& m) { return m.name() == analyses::curve_metric; });
  if (metric == results.metrics.end() || arm.by_item.size() < 2) return {};
  const auto at = static_cast<std::size_t>(metric - results.metrics.begin());
  const auto &rare = arm.by_item.front()[at].over_seeds, &popular = arm.by_item.back()[at].over_seeds;
  if (!rare || !popular) return {};
  return fmt::format("{} of {} is {} if the test item is in the group \"{}\", and {} if it is in \"{}\". ",
                     metric->title(), arm.name, metric_number(rare->mean), stratum_name(results.by_item, 0),
                     metric_number(popular->mean), stratum_name(results.by_item, arm.by_item.size() - 1));
}

std::string gains_in_words(const RecommenderResults& results) {
  std::string text;
  for (const analyses::GainDecision& decision : analyses::decide(results.comparisons)) {
    const analyses::ArmComparison& comparison = results.comparisons[decision.comparison];
    const analyses::MetricGain& gain = comparison.metrics[decision.metric];
    if (gain.metric.name() != analyses::curve_metric) continue;
    text += fmt::format("{} against {}: {} ", comparison.candidate, comparison.baseline, gain.metric.title());
    text += gain.log_ratio ? fmt::format("changes by {} {}, which is {}. ", change_of_log(gain.log_ratio),
                                         change_interval(gain.log_ratio), decision.in_words())
                           : fmt::format("is {}. ", decision.in_words());
  }
  return text;
}

std::string unfinished(const RecommenderResults& results) {
  if (results.complete()) return {};
  std::string arms;
  for (const ArmResult& arm : results.arms) {
    if (!arm.missing.empty())
      arms += fmt::format("{}{} lacks {} {}", arms.empty() ? "" : "; ", arm.name,
                          arm.missing.size() == 1 ? "seed" : "seeds", number_ranges(arm.missing, " to "));
  }
  return fmt::format(
      "{} of {} are finished: {}. Every number is over the finished seeds alone. The training command continues where "
      "it stopped.",
      results.finished(), counted(results.run->results.size(), "training"), arms);
}

std::vector<Block> run_summary_blocks(TrainedRuns runs) {
  const RecommenderResults& results = runs.front().results;
  std::vector<Block> all;
  if (const std::string text = unfinished(results); !text.empty()) all.push_back(absence(text));
  for (const std::string& reason : results.not_compared)
    all.push_back(absence(fmt::format("Not compared: {}.", reason)));
  all.push_back(paragraph(results_in_words(results)));
  if (const std::string text = ends_sentence(results) + gains_in_words(results); !text.empty())
    all.push_back(paragraph(text));
  return all;
}

}  // namespace

const Section<TrainedRun> run_summary_section = {
    .name = "summary", .title = "Summary", .question = "What came out, in a paragraph?", .blocks = run_summary_blocks};

}  // namespace gainlens::reports
