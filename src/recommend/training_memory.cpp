#include "recommend/training_memory.h"

#include "core/available_memory.h"
#include "core/check.h"
#include "core/quantity.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace gainlens::recommend {
namespace {

/// Positions of the batch with the longest histories.
double most_positions(const Settings& settings, const data::LeaveOneOut& split) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t user = 0; user < split.users(); ++user)
    lengths.push_back(std::min<std::int64_t>(std::ssize(split.training(user)) - 1, settings.model.positions));
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  double sum = 0;
  for (std::int64_t i = 0; i < std::min(settings.batch, split.users()); ++i)
    sum += static_cast<double>(lengths[static_cast<std::size_t>(i)]);
  return sum;
}

}  // namespace

std::uint64_t training_memory(const Settings& settings, const data::LeaveOneOut& split, Arm arm) {
  const auto width = static_cast<double>(settings.model.width), inner = static_cast<double>(settings.model.inner_width);
  const auto layers = static_cast<double>(settings.model.layers), items = static_cast<double>(split.items());
  const double embedding = (items + static_cast<double>(settings.model.positions)) * width;
  const double layer = 4 * width * width + 2 * width * inner;
  // Parameter, two moments, gradient; the embedding has the gradients of its two uses and their sum.
  const double parameters = 6 * embedding + 4 * layers * layer;
  // What a layer keeps for its backward pass, and the gradients on their way. Fitted to measured peaks: with all users
  // of Beauty in one batch (128,031 positions) the estimate is 1.31 GB, the peak 1.27 GB above that of the program.
  // A filter keeps moments, precisions, the Jacobian and slopes too, with their gradients.
  const double of_filter = parts_of(arm).factor == AttentionFactor::kalman_gain ? 10 * width + 2 * inner : 0;
  const double of_position = layers * (8 * width + 2 * inner + of_filter) + 6 * width;
  const double logits = settings.loss == LossKind::sampled
                            ? 4 * most_positions(settings, split) * static_cast<double>(settings.negatives)
                            : 12e6;
  const double numbers = parameters + of_position * most_positions(settings, split) + logits;
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
  std::int64_t fits = std::min(settings.batch, split.users());
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
