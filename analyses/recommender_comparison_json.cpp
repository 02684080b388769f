#include "analyses/recommender_comparison.h"

#include <cmath>

namespace gainlens::analyses {
namespace {

/// What the paper prints of a metric; null, with the reason, if it prints nothing.
void put_paper(OrderedJson& json, const ArmComparison& comparison, const RankingMetric& metric) {
  const PaperGain* const paper = paper_gain(comparison, metric);
  if (paper == nullptr) {
    json["paper"] = nullptr;
    json["paper_reason"] =
        "the paper prints nothing of such arms, of this backbone, of data of this size, or of this metric";
    return;
  }
  json["paper"] = {{"data_set", paper->data_set},
                   {"baseline_mean", paper->baseline},
                   {"baseline_deviation", paper->baseline_deviation},
                   {"candidate_mean", paper->candidate},
                   {"candidate_deviation", paper->candidate_deviation},
                   {"relative_difference", paper->relative},
                   {"paired_t_naive_p", paper->p}};
}

OrderedJson metrics_json(const ArmComparison& comparison) {
  OrderedJson metrics = OrderedJson::object();
  for (const MetricGain& gain : comparison.metrics) {
    OrderedJson json = to_json(static_cast<const ScoreGain&>(gain));
    put(json, "regression", gain.regression);
    put_paper(json, comparison, gain.metric);
    metrics[gain.metric.name()] = std::move(json);
  }
  return metrics;
}

OrderedJson strata_json(const ArmComparison& comparison, const StratifiedGains& gains) {
  OrderedJson json = to_json(static_cast<const StratifiedUsers&>(gains));
  json["metrics"] = nullptr;
  if (!gains.gains) {
    json["metrics_reason"] = gains.gains.reason();
    return json;
  }
  json["metrics"] = OrderedJson::object();
  for (std::size_t i = 0; i < gains.gains->size(); ++i) {
    OrderedJson metric = to_json((*gains.gains)[i]);
    for (std::size_t j = 0; j < metric["strata"].size(); ++j) {
      const double* const paper = paper_stratum(comparison, gains.kind, j, comparison.metrics[i].metric);
      if (paper) metric["strata"][j]["paper_relative_difference"] = *paper;
    }
    json["metrics"][comparison.metrics[i].metric.name()] = std::move(metric);
  }
  return json;
}

}  // namespace

OrderedJson to_json(const ArmComparison& comparison) {
  OrderedJson json = {{"data_set", comparison.data_set},
                      {"backbone", comparison.backbone},
                      {"baseline", comparison.baseline},
                      {"candidate", comparison.candidate},
                      {"seeds", {{"baseline", comparison.baseline_seeds}, {"candidate", comparison.candidate_seeds}}},
                      {"users", comparison.users},
                      {"items", comparison.items},
                      {"split", comparison.split},
                      {"metrics", metrics_json(comparison)}};
  const std::string note = few_seeds_note(comparison.baseline_seeds.size());
  if (!note.empty()) json["p_note"] = note;
  json["strata"] = {{"item_frequency", strata_json(comparison, comparison.by_item)},
                    {"user_activity", strata_json(comparison, comparison.by_user)}};
  json["length_frequency_correlation"] = comparison.length_frequency_correlation;  // NaN becomes null
  return json;
}

OrderedJson to_json(const PooledComparison& pooled) {
  OrderedJson json = {{"backbone", pooled.backbone},
                      {"baseline", pooled.baseline_arm},
                      {"candidate", pooled.candidate_arm},
                      {"metrics", OrderedJson::object()}};
  for (std::size_t i = 0; i < pooled.metrics.size(); ++i)
    json["metrics"][pooled.names[i].name()] = to_json(pooled.metrics[i]);
  return json;
}

}  // namespace gainlens::analyses
