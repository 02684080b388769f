#include "analyses/recommender_comparison.h"

#include "analyses/holm.h"
#include "analyses/seed_comparison.h"
#include "core/check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

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

StratumGain empty_stratum() {
  const Measured none = Measured::none("the stratum has no user");
  const auto no_gain = Maybe<CrossedEstimate>::none(none.reason());
  return {0, none, none, none, none, none, no_gain, no_gain, none};
}

StratumGain gain_of(const PairedUnits& users, const SignedGroup& group, std::span<const std::size_t> unit) {
  if (group.units.empty()) return empty_stratum();
  const SeedComparison over_seeds = compare_seeds(seed_means(users, group.units));
  const std::span one(&group, 1);
  const Measured later = Measured::none("not corrected yet");
  return {group.units.size(),
          over_seeds.baseline.mean,
          over_seeds.candidate.mean,
          over_seeds.relative,
          over_seeds.naive_p,
          later,
          crossed_gain(users, one, GainScale::difference, unit),
          crossed_gain(users, one, GainScale::log_ratio, unit),
          later};
}

void correct(std::vector<StratumGain>& strata) {
  std::vector<Measured> naive, crossed;
  for (const StratumGain& gain : strata) {
    naive.push_back(gain.naive_p);
    crossed.push_back(stated_p(gain.log_ratio));
  }
  naive = holm_where_present(naive);
  crossed = holm_where_present(crossed);
  for (std::size_t i = 0; i < strata.size(); ++i) {
    strata[i].naive_holm = naive[i];
    strata[i].crossed_holm = crossed[i];
  }
}

/// The unit of a user is the target item: users of one item gain together if the model has learned this item.
std::vector<std::size_t> units_of(const UserCounts& users) {
  return {users.target.begin(), users.target.end()};
}

MetricGain gain_of(const RankingMetric& metric, const PairedUnits& pairs, const UserCounts& users,
                   const RecommenderOptions& options) {
  const std::vector<std::size_t> unit = units_of(users);
  std::vector<std::int64_t> frequency;
  for (std::size_t user = 0; user < users.users(); ++user) frequency.push_back(users.target_count(user));
  return {score_gain(pairs, unit, options.resampling, options.resamples), metric,
          gain_regression(pairs, frequency, users.history_length, unit)};
}

StratifiedGains stratified(StratumKind kind, const UserCounts& users, const std::vector<PairedUnits>& metrics,
                           const RecommenderOptions& options) {
  StratifiedGains result{stratify(kind, users, options.item_edges)};
  const std::size_t count = result.strata.users.size();
  using Gains = std::vector<StratumInteraction>;
  if (count < 2) {
    result.gains = Maybe<Gains>::none("all users are in one stratum");
    return result;
  }
  const std::vector<std::size_t> stratum(result.strata.stratum.begin(), result.strata.stratum.end());
  const std::vector<std::size_t> unit = units_of(users);
  Gains gains;
  for (const PairedUnits& pairs : metrics)
    gains.push_back(stratum_interaction(pairs, stratum, count, 0, count - 1, unit, options.resamples));
  result.gains = std::move(gains);
  return result;
}

/// @param name  of the data set; results are stored by it
DataSetGain data_set_gain(const ArmComparison& comparison, std::size_t metric, std::string name) {
  const MetricGain& gain = comparison.metrics[metric];
  SeededDifferences runs;
  runs.seeds = comparison.baseline_seeds;
  runs.differences = gain.seed_differences;
  return {std::move(name), std::move(runs), gain.seeds.naive_p, gain.log_ratio};
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

StratifiedUsers stratify(StratumKind kind, const UserCounts& users, const std::vector<std::int64_t>& item_edges) {
  const bool items = kind == StratumKind::item_frequency;
  Strata strata = items ? by_item_frequency(users, item_edges) : by_user_activity(users);
  std::vector<StratumComposition> who = composition(users, strata);
  return {kind, items && item_edges.empty(), std::move(strata), std::move(who)};
}

std::string_view name_of(StratumKind kind) {
  return kind == StratumKind::item_frequency ? "item_frequency" : "user_activity";
}

OrderedJson to_json(const StratifiedUsers& users) {
  OrderedJson json = {{"edges", users.strata.edges}, {"composition", OrderedJson::array()}};
  for (const StratumComposition& stratum : users.composition)
    json["composition"].push_back({{"users", stratum.users},
                                   {"mean_target_count", stratum.mean_target_count},  // NaN becomes null
                                   {"mean_history_length", stratum.mean_history_length}});
  return json;
}

OrderedJson to_json(const StratumGain& gain) {
  OrderedJson json;
  json["users"] = gain.users;
  put(json, "baseline_mean", gain.baseline);
  put(json, "candidate_mean", gain.candidate);
  put(json, "relative_difference", gain.relative);
  put(json, "paired_t_naive_p", gain.naive_p);
  put(json, "paired_t_naive_p_holm", gain.naive_holm);
  put(json, "difference", gain.difference);
  put(json, "log_ratio", gain.log_ratio);
  put(json, "crossed_p_holm", gain.crossed_holm);
  return json;
}

StratumInteraction stratum_interaction(const PairedUnits& users, std::span<const std::size_t> stratum,
                                       std::size_t strata, std::size_t first, std::size_t second,
                                       std::span<const std::size_t> unit, const Resamples& resamples) {
  ASSERT(stratum.size() == users.units && first < strata && second < strata && first != second,
         "{} strata of {} users; strata {} and {} of {}", stratum.size(), users.units, first, second, strata);
  std::vector<SignedGroup> groups(strata, SignedGroup{{}, 1});
  for (std::size_t user = 0; user < stratum.size(); ++user) {
    ASSERT(stratum[user] < strata, "stratum {} of {}", stratum[user], strata);
    groups[stratum[user]].units.push_back(user);
  }
  std::vector<StratumGain> gains;
  gains.reserve(groups.size());
  for (const SignedGroup& group : groups) gains.push_back(gain_of(users, group, unit));
  correct(gains);
  const std::array contrast = {SignedGroup{groups[first].units, 1}, SignedGroup{groups[second].units, -1}};
  return {gains,
          first,
          second,
          crossed_gain(users, contrast, GainScale::difference, unit),
          crossed_gain(users, contrast, GainScale::log_ratio, unit),
          bootstrap_gain(users, contrast, resamples)};
}

OrderedJson to_json(const StratumInteraction& interaction) {
  OrderedJson json;
  json["strata"] = to_json(interaction.strata);
  OrderedJson contrast;
  contrast["first"] = interaction.first;
  contrast["second"] = interaction.second;
  put(contrast, "difference", interaction.difference);
  put(contrast, "log_ratio", interaction.log_ratio);
  put(contrast, "bootstrap_difference", interaction.bootstrap.difference);
  put(contrast, "bootstrap_log_ratio", interaction.bootstrap.log_ratio);
  json["interaction"] = contrast;
  return json;
}

std::string ArmComparison::title() const {
  return fmt::format("{} against {} on {} ({})", candidate, baseline, printable(data_set, 60), printable(backbone, 60));
}

std::string ArmComparison::title_with_split() const {
  return fmt::format("{}, split {}", title(), printable(split, 12));
}

namespace {

bool are_those_of_paper(const ArmComparison& comparison) {
  return comparison.baseline_arm == "plain" && comparison.candidate_arm == "bft";
}

}  // namespace

const PaperGain* paper_gain(const ArmComparison& comparison, const RankingMetric& metric) {
  if (!are_those_of_paper(comparison)) return nullptr;
  return find_paper_gain(comparison.backbone, comparison.paper.data_set, metric.name());
}

const double* paper_stratum(const ArmComparison& comparison, StratumKind kind, std::size_t stratum,
                            const RankingMetric& metric) {
  if (!are_those_of_paper(comparison)) return nullptr;
  return find_paper_stratum(comparison.backbone, comparison.paper.data_set, kind, stratum, metric.name());
}

std::string backbones_of(const ArmPair& pair) {
  const std::string candidate = pair.candidate.run->backbone(), baseline = pair.baseline.run->backbone();
  return candidate == baseline ? candidate : fmt::format("{} against {}", candidate, baseline);
}

PaperMatch paper_match_of(const runfile::RecommendRun& run, std::string_view name) {
  return paper_match(name, std::ssize(run.units), std::ssize(run.item_train_count),
                     run.request.at("data").at("interactions").get<std::int64_t>());
}

ArmComparison compare_arms(const ArmPair& pair, const RecommenderOptions& options) {
  const runfile::RecommendRun& run = *pair.baseline.run;
  const UserCounts users = user_counts(run);
  const std::vector<double> baseline = pair.baseline.scores(runfile::rank_score),
                            candidate = pair.candidate.scores(runfile::rank_score);
  const std::size_t seeds = pair.baseline.seeds().size();
  std::vector<PairedUnits> metrics;
  std::vector<MetricGain> gains;
  for (const RankingMetric& metric : options.metrics) {
    metrics.push_back(paired_users(metric, baseline, candidate, seeds, users.users()));
    gains.push_back(gain_of(metric, metrics.back(), users, options));
  }
  return {.data_set = run.data_name(),
          .backbone = backbones_of(pair),
          .split = run.split(),
          .baseline = pair.baseline.label,
          .candidate = pair.candidate.label,
          .baseline_arm = pair.baseline.name(),
          .candidate_arm = pair.candidate.name(),
          .baseline_seeds = pair.baseline.seeds(),
          .candidate_seeds = pair.candidate.seeds(),
          .users = users.users(),
          .items = users.item_train_count.size(),
          .metrics = std::move(gains),
          .by_item = stratified(StratumKind::item_frequency, users, metrics, options),
          .by_user = stratified(StratumKind::user_activity, users, metrics, options),
          .length_frequency_correlation = length_frequency_correlation(users),
          .baseline_curves = curves_of(pair.baseline),
          .candidate_curves = curves_of(pair.candidate),
          .paper = paper_match_of(run, options.paper)};
}

std::vector<PooledComparison> pool_comparisons(std::span<const ArmComparison> comparisons,
                                               const RecommenderOptions& options) {
  using Key = std::tuple<std::string, std::string, std::string>;
  const auto key_of = [](const ArmComparison& c) { return Key{c.backbone, c.baseline_arm, c.candidate_arm}; };
  std::vector<PooledComparison> pooled;
  std::set<Key> done;
  for (const ArmComparison& first : comparisons) {
    if (!done.insert(key_of(first)).second) continue;
    std::vector<const ArmComparison*> group;
    std::set<std::string> splits;
    for (const ArmComparison& other : comparisons) {
      // Of two comparisons on one split only the first is pooled: they share their users.
      if (key_of(other) == key_of(first) && splits.insert(other.split).second) group.push_back(&other);
    }
    if (group.size() < 2) continue;
    PooledComparison entry{first.backbone, first.baseline_arm, first.candidate_arm, options.metrics, {}};
    for (std::size_t metric = 0; metric < options.metrics.size(); ++metric) {
      std::vector<DataSetGain> gains;
      gains.reserve(group.size());
      for (const ArmComparison* comparison : group) {
        const bool alone = std::ranges::count(group, comparison->data_set, &ArmComparison::data_set) == 1;
        gains.push_back(
            data_set_gain(*comparison, metric,
                          alone ? comparison->data_set
                                : fmt::format("{}, split {}", comparison->data_set, comparison->split.substr(0, 12))));
      }
      entry.metrics.push_back(pool_data_sets(gains, options.resampling));
    }
    pooled.push_back(std::move(entry));
  }
  return pooled;
}

}  // namespace gainlens::analyses
