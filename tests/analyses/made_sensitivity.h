#pragma once

#include "core/json.h"
#include "core/short_text.h"
#include "runfile/made_recommend_run.h"

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace gainlens::testing {

/// A setting of a made-up run, and what it does.
struct MadeSetting {
  std::string key;
  Json value;
  double gain = 0;        ///< share of the misses that become hits; below 0: of the hits that become misses
  double redrawn = 0.02;  ///< share of the users whose rank is drawn again; 0 with gain 0: the ranks of the reference
  std::string name = {};  ///< of the variant; empty: KEY-VALUE
};

struct MadeSensitivity {
  std::vector<MadeSetting> settings;
  std::size_t seeds = 5, users = 600;
  std::string arm = "bft";
};

/// Arm bft with its own settings and with variants.
inline runfile::RecommendRun made_sensitivity_run(const MadeSensitivity& made) {
  MadeRecommender base;
  base.arms = {made.arm};
  base.users = made.users;
  base.seeds.resize(made.seeds);
  std::iota(base.seeds.begin(), base.seeds.end(), std::uint64_t{0});
  runfile::RecommendRun run = made_recommend_run(base);
  run.request["training"] = {{"initial_gain", 0.9},
                             {"initial_decay", 0.99},
                             {"most_process_noise", 1.0},
                             {"prior_variance", 0.0},
                             {"precision_learning_rate", 100.0},
                             {"most_precision", 100.0},
                             {"warm_up", 50},
                             {"width", 64},
                             {"heads", 2},
                             {"dropout", 0.5},
                             {"estimator", "reml"}};
  Random random(7);
  const auto drawn = [&random] { return random.uniform() < 0.1 ? 1.0 + static_cast<double>(random.below(10)) : 50.0; };
  const auto finish = [](runfile::TrainedSeed& seed) {
    for (const RankingMetric& metric : ranking_metrics())
      seed.test[metric.name()] = mean_of(metric, seed.scores.at("rank"));
  };
  for (auto& result : run.results) {
    for (double& rank : result->scores.at("rank")) rank = drawn();
    finish(*result);
  }
  for (const MadeSetting& setting : made.settings) {
    const std::string name = setting.name.empty() ? setting.key + "-" + short_text(setting.value) : setting.name;
    run.request["variants"][name][setting.key] = setting.value;
    run.arms.push_back(made.arm + "/" + name);
    for (std::size_t seed = 0; seed < made.seeds; ++seed) {
      runfile::TrainedSeed result = *run.results[seed];
      for (double& rank : result.scores.at("rank")) {
        if (random.uniform() < setting.redrawn) rank = drawn();
        if (rank > 10 && random.uniform() < setting.gain) rank = 1;
        if (rank <= 10 && random.uniform() < -setting.gain) rank = 50;
      }
      finish(result);
      run.results.emplace_back(std::move(result));
    }
  }
  return run;
}

}  // namespace gainlens::testing
