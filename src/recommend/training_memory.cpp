#include "recommend/training_memory.h"

#include "core/available_memory.h"
#include "core/check.h"
#include "core/quantity.h"
#include "recommend/training_batch.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace gainlens::recommend {
namespace {

/// Positions of the batch with the longest histories.
double max_positions(const Settings& settings, const HistoryView& view, const data::LeaveOneOut& split) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t user = 0; user < split.training_users(); ++user)
    lengths.push_back(max_trained_positions(split, user, view));
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  double sum = 0;
  for (std::int64_t i = 0; i < std::min(settings.batch, split.training_users()); ++i)
    sum += static_cast<double>(lengths[static_cast<std::size_t>(i)]);
  return sum;
}

}  // namespace

std::uint64_t training_memory(const Settings& settings, const data::LeaveOneOut& split, Arm arm) {
  const ModelPlan plan = plan_of(settings, arm, split.items());
  const ModelNumbers model = settings.backbone->memory(plan);
  const double positions = max_positions(settings, settings.backbone->view(plan), split);
  const double logits =
      settings.loss == LossKind::sampled ? 4 * positions * static_cast<double>(settings.negatives) : 12e6;
  const double numbers = model.parameters + model.one_position * positions + logits;
  return static_cast<std::uint64_t>(4 * numbers);
}

void check_memory(const Settings& settings, const data::LeaveOneOut& split, std::int64_t trainings, Arm arm) {
  const std::optional<std::uint64_t> available = available_memory();
  const auto all = static_cast<std::uint64_t>(trainings);
  const auto needed = [&](std::int64_t batch) {
    Settings changed = settings;
    changed.batch = batch;
    return training_memory(changed, split, arm) * all;
  };
  const std::uint64_t asked = needed(settings.batch);
  if (!available || asked <= *available) return;
  std::int64_t fits = std::min(settings.batch, split.training_users());
  while (fits > 0 && needed(fits) > *available) fits /= 2;
  const std::string beside = trainings > 1 ? fmt::format(" for {} trainings side by side", trainings) : "";
  CHECK(fits > 0, "--batch: {} users need about {}{}, and {} are available; no batch fits. {}", settings.batch,
        format_bytes(asked), beside, format_bytes(*available),
        trainings > 1 ? "Give --seeds-at-once 1, or a smaller --width" : "Give a smaller --width");
  throw_invalid("--batch: {} users need about {}{}, and {} are available; --batch {} fits{}", settings.batch,
                format_bytes(asked), beside, format_bytes(*available), fits,
                trainings > 1 ? ", or give --seeds-at-once 1" : "");
}

}  // namespace gainlens::recommend
