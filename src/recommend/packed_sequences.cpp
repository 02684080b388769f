#include "recommend/packed_sequences.h"

#include "core/check.h"

#include <ATen/ATen.h>

namespace gainlens::recommend {

at::Tensor PackedSequences::last_rows() const {
  std::vector<std::int64_t> rows;
  for (std::size_t i = 1; i < begin.size(); ++i) rows.push_back(begin[i] - 1);
  return at::tensor(rows, at::kLong).to(items.device());
}

PackedSequences pack(std::span<const data::History> histories, const HistoryView& view, at::Device device) {
  ASSERT(view.mask == 0 || !view.times, "a mask has no time");
  ASSERT(view.padded_to == 0 || (view.mask == 0 && !view.times && view.alignment == Alignment::end),
         "padding in front is for histories of items alone that end at the last position");
  PackedSequences packed;
  packed.begin.push_back(0);
  std::vector<std::int64_t> items, places;
  std::vector<double> times;
  for (const data::History& history : histories) {
    const std::int64_t all = std::ssize(history.items), length = view.seen(all),
                       positions = view.mask == 0 ? length : length + 1;
    const std::int64_t first = view.alignment == Alignment::end ? view.positions - positions : 0;
    CHECK(!view.times || std::ssize(history.times) == all,
          "histories: the data set has no times, and the model needs them");
    const std::int64_t padding = std::max<std::int64_t>(view.padded_to - length, 0);
    items.insert(items.end(), static_cast<std::size_t>(padding), 0);
    places.insert(places.end(), static_cast<std::size_t>(padding), 0);
    for (std::int64_t i = 0; i < length; ++i) {
      const auto source = static_cast<std::size_t>(all - length + i);
      items.push_back(history.items[source]);
      places.push_back(first + i);
      if (view.times) times.push_back(history.times[source]);
    }
    if (view.mask != 0) {
      items.push_back(view.mask);
      places.push_back(first + length);
    }
    packed.begin.push_back(packed.begin.back() + padding + positions);
  }
  packed.items = at::tensor(items, at::kLong).to(device);
  packed.places = at::tensor(places, at::kLong).to(device);
  if (view.times) packed.times = at::tensor(times, at::kDouble).to(device);
  return packed;
}

PackedSequences pack_training(const data::LeaveOneOut& split, std::span<const std::int64_t> users,
                              const HistoryView& view, at::Device device) {
  std::vector<data::History> histories;
  histories.reserve(users.size());
  for (const std::int64_t user : users) histories.push_back(split.training_inputs(user));
  return pack(histories, view, device);
}

}  // namespace gainlens::recommend
