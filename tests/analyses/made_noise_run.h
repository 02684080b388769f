#pragma once

#include "core/random.h"
#include "runfile/experiment_run.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::testing {

/// A made-up fine-tuning: sft and bft at 0, 10 and 40% of wrong words, F1 and exact match of questions.
struct MadeNoise {
  std::vector<std::uint64_t> seeds = {0, 1, 2, 3, 4};
  std::size_t questions = 60;
  std::size_t selection = 0;
  double gain = 0.1;  ///< of bft in F1, at every level
};

inline runfile::ExperimentRun made_noise_run(const MadeNoise& made = {}) {
  runfile::ExperimentRun run;
  run.request = {
      {"unit", "question"},
      {"kind", "train finetune"},
      {"data", {{"name", "made"}, {"split", "made-split"}, {"task", "squad"}, {"selection_rows", made.selection}}}};
  run.arms = {"sft/np0", "sft/np10", "sft/np40", "bft/np0", "bft/np10", "bft/np40"};
  run.seeds = made.seeds;
  for (std::size_t i = 0; i < made.questions; ++i) run.units.push_back("question-" + std::to_string(i));
  run.unit_scores = {{"exact_match", true, "1"}, {"f1", true, "1"}};
  const double lost[] = {0, 0.05, 0.2};
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    for (const std::uint64_t seed : made.seeds) {
      Random own(seed, arm);
      runfile::TrainedSeed result;
      const double level = 0.5 - lost[arm % 3] + (arm < 3 ? 0 : made.gain) + 0.02 * own.uniform();
      for (std::size_t i = 0; i < made.questions; ++i) {
        const double f1 = level + 0.2 * (own.uniform() - 0.5);
        result.scores["f1"].push_back(f1);
        result.scores["exact_match"].push_back(f1 > 0.45 ? 1 : 0);
      }
      for (const auto& [name, values] : result.scores) result.test[name] = mean_score(values);
      result.best_epoch = 2;
      result.curve = {{"training_loss", {2, 1}}, {"validation_loss", {2.1, 1.5}}};
      if (arm < 3) result.curve["gamma"] = {0.6932, 0.6935};
      run.results.emplace_back(std::move(result));
    }
  }
  return run;
}

}  // namespace gainlens::testing
