#include "analyses/stratum_interaction.h"

#include "analyses/holm.h"
#include "analyses/seed_comparison.h"
#include "core/check.h"

#include <array>
#include <utility>

namespace gainlens::analyses {
namespace {

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

}  // namespace

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

}  // namespace gainlens::analyses
