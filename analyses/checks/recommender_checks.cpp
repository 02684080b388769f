#include "analyses/checks/shared_training_checks.h"
#include "core/counted.h"

#include <fmt/format.h>

namespace gainlens::analyses {
namespace {

using runfile::TrainedSeed;

bool is_trained(const TrainedSeed* seed) {
  return seed != nullptr && seed->best_epoch > 0;
}

CheckOutcome files(const CheckedRecommenders& checked) {
  return training_checks::files(checked);
}

CheckOutcome finished(const CheckedRecommenders& checked) {
  return training_checks::finished(checked);
}

CheckOutcome diverged(const CheckedRecommenders& checked) {
  const std::int64_t items = std::ssize(checked.run.item_train_count);
  return training_checks::diverged(checked,
                                   [&](const TrainedSeed& seed) { return runfile::divergence_of(seed, items); });
}

CheckOutcome seeds(const CheckedRecommenders& checked) {
  return training_checks::seeds(checked);
}

CheckOutcome last_epoch(const CheckedRecommenders& checked) {
  const training_checks::Faulty last(checked, [](const TrainedSeed* seed) {
    if (!is_trained(seed) || seed->curve.empty()) return false;
    return seed->best_epoch == std::ssize(seed->curve.begin()->second);
  });
  if (last.none()) return satisfactory("no training was still getting better when it ended");
  return {fmt::format("the last epoch is the best one, so more would have helped: {} of {} ({})", last.count(),
                      counted(training_checks::Faulty(checked, is_trained).count(), "training"), last.words()),
          "repeat the command with more --epochs, which continues"};
}

CheckOutcome filter(const CheckedRecommenders& checked) {
  return training_checks::filter(checked, "train longer, or with a smaller --warm-up");
}

CheckOutcome bounds(const CheckedRecommenders& checked) {
  return training_checks::bounds(checked, "train with a larger --most-precision, or read no evidence from these gains");
}

}  // namespace

CheckedRecommenders::CheckedRecommenders(const runfile::RecommendRun& made)
    : CheckedTrainings{made, "gainlens train recommend"}, run(made) {}

std::span<const Check<CheckedRecommenders>> recommender_checks() {
  static constexpr Check<CheckedRecommenders> checks[] = {
      {"files", "Are the files those that the trainings wrote?", files},
      {"finished", "Is every training finished?", finished},
      {"diverged", "Has no training diverged?", diverged},
      {"seeds", "Are there enough seeds for a p?", seeds},
      {"last_epoch", "Had every training stopped getting better?", last_epoch},
      {"filter", "Was the filter in force?", filter},
      {"bounds", "Are lambda and lambda_obs within their bounds?", bounds},
  };
  return checks;
}

}  // namespace gainlens::analyses
