#pragma once

#include "core/random.h"
#include "core/ranking_metrics.h"
#include "runfile/recommend_run.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::testing {

/// A made-up recommender run.
struct MadeRecommender {
  std::string data = "made";
  std::string backbone = "sasrec";
  std::vector<std::string> arms = {"plain", "bft"};
  std::vector<std::uint64_t> seeds = {0, 1, 2};
  std::size_t users = 60, items = 25;
  double gain = 0.3;             ///< share by which each later arm lowers the ranks
  std::uint64_t users_seed = 0;  ///< other users have other targets and another split
};

inline void add_users(runfile::RecommendRun& run, const MadeRecommender& made, Random& random) {
  run.item_train_count.assign(made.items, 0);
  for (std::size_t user = 0; user < made.users; ++user) {
    run.units.push_back("user-" + std::to_string(user));
    // Squares: items with small ids are more popular.
    const auto item = [&] {
      const double at = random.uniform();
      return static_cast<std::size_t>(at * at * static_cast<double>(made.items));
    };
    const auto length = static_cast<std::int64_t>(1 + random.below(8));
    for (std::int64_t i = 0; i < length; ++i) ++run.item_train_count[item()];
    run.training_length.push_back(length);
    run.history_length.push_back(length + 1);
    run.target.push_back(static_cast<std::int64_t>(item()) + 1);
  }
}

/// Popular items get better ranks, and so do later arms.
inline runfile::TrainedSeed made_seed(const runfile::RecommendRun& run, double gain, Random& random) {
  runfile::TrainedSeed seed;
  const auto items = static_cast<double>(run.item_train_count.size());
  for (const std::int64_t target : run.target) {
    const double place = (static_cast<double>(target) / items + random.uniform()) / 2;
    const double rank = 1 + std::floor(2 * place * place * place * (1 - gain) * (items - 1)) / 2;
    seed.scores["rank"].push_back(static_cast<float>(rank));
  }
  for (const RankingMetric& metric : ranking_metrics())
    seed.test[metric.name()] = mean_of(metric, seed.scores.at("rank"));
  const auto epochs = static_cast<std::int64_t>(3 + random.below(3));
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    const double x = static_cast<double>(epoch);
    seed.curve["training_loss"].push_back(3 / x);
    seed.curve["ndcg@10"].push_back(seed.test.at("ndcg@10") * (1 - 0.5 / x));
  }
  seed.best_epoch = epochs;
  return seed;
}

inline runfile::RecommendRun made_recommend_run(const MadeRecommender& made = {}) {
  runfile::RecommendRun run;
  Random random(made.users_seed);
  add_users(run, made, random);
  run.request = {{"backbone", made.backbone},
                 {"data",
                  {{"name", made.data},
                   {"format", "sequences"},
                   {"users", made.users},
                   {"items", made.items},
                   {"interactions", 3 * made.users},
                   {"split", "split-" + made.data + std::to_string(made.users_seed)}}},
                 {"training", {{"epochs", 5}}}};
  run.arms = made.arms;
  run.seeds = made.seeds;
  for (std::size_t arm = 0; arm < made.arms.size(); ++arm) {
    for (const std::uint64_t seed : made.seeds) {
      Random own(static_cast<std::uint64_t>(seed), arm);
      run.results.push_back(made_seed(run, made.gain * static_cast<double>(arm), own));
    }
  }
  return run;
}

/// The same with what other runs lack: an arm without training, and a seed that is not finished.
inline runfile::RecommendRun uneven_recommend_run() {
  MadeRecommender made;
  made.arms = {"plain", "bft", "popularity"};
  runfile::RecommendRun run = made_recommend_run(made);
  for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
    run.results[6 + seed]->curve.clear();
    run.results[6 + seed]->best_epoch = 0;
  }
  run.results[4].reset();
  return run;
}

}  // namespace gainlens::testing
