#include "runfile/validation_ranks.h"

#include "core/check.h"
#include "core/ranking_metrics.h"

namespace gainlens::runfile {

RecommendRun on_validation_items(const RecommendRun& run, const std::string& where) {
  RecommendRun changed = run;
  changed.target = run.validation_target;
  changed.history_length = run.training_length;  // the validation item is not known yet
  for (std::size_t i = 0; i < changed.results.size(); ++i) {
    if (!changed.results[i]) continue;
    TrainedSeed& result = *changed.results[i];
    const auto ranks = result.scores.find(validation_rank_score);
    CHECK(ranks != result.scores.end() && !run.validation_target.empty(),
          "{}: {}, seed {}, has no ranks of validation items, which earlier versions did not store; delete {} in its "
          "folder and repeat its gainlens train recommend command, which computes them",
          where, printable(run.arms[i / run.seeds.size()], 60), run.seeds[i % run.seeds.size()], "result.safetensors");
    result.scores = {{rank_score, ranks->second}};
    result.test.clear();
    for (const RankingMetric& metric : ranking_metrics())
      result.test[metric.name()] = mean_of(metric, ranks_of(result));
  }
  return changed;
}

}  // namespace gainlens::runfile
