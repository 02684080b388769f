#include "recommend/training_batch.h"

#include "core/random.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gainlens::recommend {
namespace {

/// Of what is hidden: the same in all arms and seeds, so that they learn from the same data. Source: the paper,
/// appendix, "Objectives".
constexpr std::uint64_t data_seed = 0;
/// Of that seed: not a stream of the training whose seed is 0 (recommend_task.cpp).
constexpr std::uint64_t mask_stream = std::uint64_t{1} << 43;

/// What is hidden of the last training items of a user: places in each copy, in order.
std::vector<std::vector<std::int64_t>> hidden_places(std::int64_t users, std::int64_t user, std::int64_t epoch,
                                                     std::int64_t items, double probability) {
  Random random(data_seed, mask_stream + static_cast<std::uint64_t>(epoch * users + user));
  std::vector<std::int64_t> drawn;
  for (std::int64_t i = 0; i < items; ++i) {
    if (random.uniform() < probability) drawn.push_back(i);
  }
  std::vector<std::vector<std::int64_t>> copies;
  if (!drawn.empty()) copies.push_back(std::move(drawn));
  copies.push_back({items - 1});
  return copies;
}

std::int64_t training_items(const data::LeaveOneOut& split, std::int64_t user) {
  return std::ssize(split.training(user));
}

}  // namespace

std::int64_t max_trained_positions(const data::LeaveOneOut& split, std::int64_t user, const HistoryView& view) {
  const std::int64_t items = training_items(split, user);
  if (view.mask == 0) return std::min(items - 1, view.positions);
  return items > 1 ? 2 * std::min(items, view.positions) : 0;
}

TrainingBatch training_batch(const data::LeaveOneOut& split, std::span<const std::int64_t> users, training::Range own,
                             const HistoryView& view, std::int64_t epoch, at::Device device) {
  const bool masked = view.mask != 0;
  TrainingBatch batch;
  std::vector<data::History> histories;
  std::vector<std::int64_t> asked;
  std::int64_t rows = 0;  // of this process
  /// A sequence of a user that is asked for `items` at `places`.
  const auto add = [&](std::int64_t index, const data::History& history, std::int64_t positions,
                       std::span<const data::ItemId> items, std::span<const std::int64_t> places) {
    const std::int64_t targets = masked ? std::ssize(places) : positions;
    batch.all_targets += targets;
    if (index < own.first) batch.positions_before += positions;
    if (index < own.first || index >= own.last) return;
    histories.push_back(history);
    for (std::int64_t i = 0; i < targets; ++i) {
      const std::int64_t place = masked ? places[static_cast<std::size_t>(i)] : i;
      if (masked) asked.push_back(rows + place);
      batch.targets.push_back(items[static_cast<std::size_t>(place)]);
    }
    rows += positions;
  };
  for (std::int64_t i = 0; i < std::ssize(users); ++i) {
    const std::int64_t user = users[static_cast<std::size_t>(i)], all = training_items(split, user);
    if (all < 2) continue;
    const std::int64_t positions = std::min(masked ? all : all - 1, view.positions);
    const auto items = split.training(user).last(static_cast<std::size_t>(positions));
    if (!masked) {
      add(i, split.training_inputs(user), positions, items, {});
      continue;
    }
    const data::History history = split.interactions().history(user).first(static_cast<std::size_t>(all));
    for (const auto& places : hidden_places(split.training_users(), user, epoch, positions, view.mask_probability))
      add(i, history, positions, items, places);
  }
  HistoryView whole = view;
  whole.mask = 0;
  batch.inputs = pack(histories, whole, device);
  if (masked) {
    batch.asked = at::tensor(asked, at::kLong).to(device);
    batch.inputs.items.index_fill_(0, batch.asked, view.mask);
  }
  return batch;
}

}  // namespace gainlens::recommend
