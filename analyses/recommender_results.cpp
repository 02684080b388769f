#include "analyses/recommender_results.h"

#include "core/check.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace gainlens::analyses {
namespace {

SeedValues over_seeds(std::vector<double> by_seed, const std::string& reason) {
  const auto summary = by_seed.empty() ? Maybe<ArmSummary>::none(reason) : Maybe<ArmSummary>(arm_summary(by_seed));
  return {std::move(by_seed), summary};
}

/// Means of some users over seeds and users.
class CrossedMeans {
 public:
  explicit CrossedMeans(const RecommenderArm& arm)
      : seeds_(arm.finished().size()), ranks_(arm.scores(runfile::rank_score)) {
    unit_.assign(arm.run->target.begin(), arm.run->target.end());
  }

  Maybe<CrossedEstimate> of(const RankingMetric& metric, std::vector<std::size_t> users) {
    if (seeds_ == 0) return Maybe<CrossedEstimate>::none("no seed is finished");
    if (users.empty()) return Maybe<CrossedEstimate>::none("no user is in this group");
    const std::vector<SignedGroup> group = {{std::move(users), 1}};
    return crossed_gain(above_nothing(metric), group, GainScale::difference, unit_);
  }

 private:
  /// A mean is a gain over 0.
  const PairedUnits& above_nothing(const RankingMetric& metric) {
    const auto [found, is_new] = values_.try_emplace(metric.name());
    if (is_new) {
      found->second = paired_users(metric, ranks_, ranks_, seeds_, unit_.size());
      std::fill(found->second.baseline.begin(), found->second.baseline.end(), 0.0);
    }
    return found->second;
  }

  std::size_t seeds_;
  std::vector<double> ranks_;
  std::vector<std::size_t> unit_;
  std::map<std::string, PairedUnits> values_;
};

/// A metric of the users of one stratum.
SeedValues stratum_values(const RecommenderArm& arm, const RankingMetric& metric, const Strata& strata,
                          std::size_t stratum, CrossedMeans& crossed) {
  std::vector<double> means;
  for (const std::size_t seed : arm.finished()) {
    std::vector<double> ranks;
    for (std::size_t user = 0; user < strata.stratum.size(); ++user) {
      if (strata.stratum[user] == static_cast<std::int64_t>(stratum))
        ranks.push_back(runfile::ranks_of(arm.result(seed))[user]);
    }
    if (!ranks.empty()) means.push_back(mean_of(metric, ranks));
  }
  std::vector<std::size_t> users;
  for (std::size_t user = 0; user < strata.stratum.size(); ++user) {
    if (strata.stratum[user] == static_cast<std::int64_t>(stratum)) users.push_back(user);
  }
  SeedValues values =
      over_seeds(std::move(means), strata.users[stratum] == 0 ? "no user is in this group" : "no seed is finished");
  values.crossed = crossed.of(metric, std::move(users));
  return values;
}

std::vector<std::vector<SeedValues>> strata_of(const RecommenderArm& arm, const std::vector<RankingMetric>& metrics,
                                               const Strata& strata, CrossedMeans& crossed) {
  std::vector<std::vector<SeedValues>> all(strata.users.size());
  for (std::size_t stratum = 0; stratum < all.size(); ++stratum) {
    for (const RankingMetric& metric : metrics)
      all[stratum].push_back(stratum_values(arm, metric, strata, stratum, crossed));
  }
  return all;
}

ArmResult result_of(const RecommenderArm& arm, const RecommenderResults& all) {
  ArmResult result{.name = arm.name(),
                   .finished = arm.seeds(),
                   .missing = {},
                   .trained = false,
                   .epochs = {},
                   .best_epochs = {},
                   .test = {},
                   .validation = over_seeds({}, "no seed is trained"),
                   .by_item = {},
                   .by_user = {},
                   .curves = {}};
  for (std::size_t seed = 0; seed < arm.run->seeds.size(); ++seed) {
    if (!arm.run->result(arm.arm, seed)) result.missing.push_back(arm.run->seeds[seed]);
  }
  std::vector<double> validation;
  for (const std::size_t seed : arm.finished()) {
    const runfile::TrainedSeed& trained = arm.result(seed);
    result.trained = result.trained || trained.best_epoch > 0;
    result.best_epochs.push_back(trained.best_epoch);
    result.epochs.push_back(trained.curve.empty() ? 0 : std::ssize(trained.curve.begin()->second));
  }
  result.curves = curves_of(arm);
  for (const ArmCurve& curve : result.curves)
    validation.push_back(curve.values.at(static_cast<std::size_t>(curve.best_epoch - 1)));
  result.validation = over_seeds(std::move(validation), "no seed is trained");
  CrossedMeans crossed(arm);
  std::vector<std::size_t> everybody(arm.run->units.size());
  std::iota(everybody.begin(), everybody.end(), std::size_t{0});
  for (const RankingMetric& metric : ranking_metrics()) {
    std::vector<double> values;
    for (const std::size_t seed : arm.finished()) values.push_back(arm.result(seed).test.at(metric.name()));
    result.test.push_back(over_seeds(std::move(values), "no seed is finished"));
    result.test.back().crossed = crossed.of(metric, everybody);
  }
  result.by_item = strata_of(arm, all.metrics, all.by_item.strata, crossed);
  result.by_user = strata_of(arm, all.metrics, all.by_user.strata, crossed);
  return result;
}

Maybe<Reach> reach_of(const std::vector<std::int64_t>& counts, bool trained) {
  if (!trained) return Maybe<Reach>::none("the arm is not trained");
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  return Reach{*least, *most};
}

}  // namespace

Maybe<Reach> ArmResult::reach_of_epochs() const {
  return reach_of(epochs, trained);
}

Maybe<Reach> ArmResult::reach_of_best_epochs() const {
  return reach_of(best_epochs, trained);
}

std::size_t RecommenderResults::finished() const {
  return static_cast<std::size_t>(
      std::count_if(run->results.begin(), run->results.end(), [](const auto& result) { return result.has_value(); }));
}

RecommenderResults recommender_results(const std::filesystem::path& path,
                                       const std::shared_ptr<const runfile::RecommendRun>& run,
                                       const RecommenderOptions& options) {
  const UserCounts users = user_counts(*run);
  RecommenderResults results{run,
                             {},
                             options.metrics,
                             stratify(StratumKind::item_frequency, users, options.item_edges),
                             stratify(StratumKind::user_activity, users),
                             length_frequency_correlation(users),
                             {},
                             {},
                             paper_match_of(*run, options.paper)};
  CHECK(results.finished() > 0, "{}: no seed is finished; repeat its gainlens train recommend command, which continues",
        printable(path.string()));
  std::vector<RecommenderArm> arms;
  for (std::size_t arm = 0; arm < run->arms.size(); ++arm) arms.push_back({path, run, arm});
  name_arms(arms);
  for (const RecommenderArm& arm : arms) {
    results.arms.push_back(result_of(arm, results));
    if (arm.arm == 0) continue;
    const Maybe<ArmPair> pair = pair_shared_seeds(arms.front(), arm);
    if (pair)
      results.comparisons.push_back(compare_arms(*pair, options));
    else
      results.not_compared.push_back(pair.reason());
  }
  return results;
}

OrderedJson to_json(const SeedValues& values) {
  if (!values.over_seeds) return nullptr;
  OrderedJson json = to_json(*values.over_seeds);
  json["by_seed"] = values.by_seed;
  put(json, "over_seeds_and_users", values.crossed);
  return json;
}

OrderedJson to_json(const ArmResult& arm) {
  OrderedJson json = {{"seeds", arm.finished},
                      {"seeds_missing", arm.missing},
                      {"trained", arm.trained},
                      {"epochs", arm.epochs},
                      {"best_epochs", arm.best_epochs}};
  const auto put_values = [](OrderedJson& object, const std::string& name, const SeedValues& values) {
    object[name] = to_json(values);
    if (!values.over_seeds) object[name + "_reason"] = values.over_seeds.reason();
  };
  put_values(json, "validation_" + std::string(curve_metric), arm.validation);
  json["test"] = OrderedJson::object();
  for (std::size_t i = 0; i < arm.test.size(); ++i) put_values(json["test"], ranking_metrics()[i].name(), arm.test[i]);
  return json;
}

}  // namespace gainlens::analyses
