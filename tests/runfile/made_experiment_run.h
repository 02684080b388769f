#pragma once

#include "core/random.h"
#include "runfile/experiment_run.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::testing {

/// A made-up experiment: the loss of documents, where lower is better, and the share of words that were right.
struct MadeExperiment {
  std::vector<std::string> arms = {"plain", "bft"};
  std::vector<std::uint64_t> seeds = {0, 1, 2};
  std::size_t documents = 40;
  double gain = 0.2;  ///< by which each later arm lowers the loss
};

inline runfile::TrainedSeed made_evaluation(const MadeExperiment& made, double gain, Random& random) {
  runfile::TrainedSeed seed;
  const double of_run = 0.1 * random.uniform();
  for (std::size_t document = 0; document < made.documents; ++document) {
    seed.scores["loss"].push_back(3 + static_cast<double>(document % 7) / 7 + of_run + 0.2 * random.uniform() - gain);
    seed.scores["right"].push_back(random.uniform() < 0.3 + gain ? 1 : 0);
  }
  for (const auto& [name, values] : seed.scores) seed.test[name] = mean_score(values);
  seed.test["perplexity"] = 20 - gain;  // a metric that is no mean of scores
  seed.best_epoch = 2;
  seed.curve = {{"training_loss", {4, 3.5, 3.2}}, {"loss", {3.9, 3.4, 3.6}}};
  return seed;
}

inline runfile::ExperimentRun made_experiment_run(const MadeExperiment& made = {}) {
  runfile::ExperimentRun run;
  run.request = {{"unit", "document"}, {"data", {{"name", "made texts"}, {"split", "split-of-texts"}}}};
  run.arms = made.arms;
  run.seeds = made.seeds;
  for (std::size_t i = 0; i < made.documents; ++i) run.units.push_back("document-" + std::to_string(i));
  run.unit_scores = {{"loss", false, "nats"}, {"right", true, "1"}};
  for (std::size_t arm = 0; arm < made.arms.size(); ++arm) {
    for (const std::uint64_t seed : made.seeds) {
      Random own(seed, arm);
      run.results.push_back(made_evaluation(made, made.gain * static_cast<double>(arm), own));
    }
  }
  return run;
}

/// The same with what other runs lack: an arm without training, and a seed that is not finished.
inline runfile::ExperimentRun uneven_experiment_run() {
  runfile::ExperimentRun run = made_experiment_run({.arms = {"plain", "bft/wide", "unigram"}});
  for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
    run.results[6 + seed]->curve.clear();
    run.results[6 + seed]->best_epoch = 0;
  }
  run.results[4].reset();
  return run;
}

}  // namespace gainlens::testing
