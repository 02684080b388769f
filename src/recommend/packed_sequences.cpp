#include "recommend/packed_sequences.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gainlens::recommend {

at::Tensor PackedSequences::last_rows() const {
  std::vector<std::int64_t> rows;
  for (std::size_t i = 1; i < begin.size(); ++i) rows.push_back(begin[i] - 1);
  return at::tensor(rows, at::kLong).to(items.device());
}

PackedSequences pack(std::span<const std::span<const data::ItemId>> sequences, const SasRecConfig& config,
                     at::Device device) {
  PackedSequences packed;
  packed.begin.push_back(0);
  std::vector<std::int64_t> items, places;
  for (const auto& sequence : sequences) {
    const std::int64_t length = std::min<std::int64_t>(std::ssize(sequence), config.positions);
    const std::int64_t first = config.alignment == Alignment::end ? config.positions - length : 0;
    for (std::int64_t i = 0; i < length; ++i) {
      items.push_back(sequence[sequence.size() - static_cast<std::size_t>(length - i)]);
      places.push_back(first + i);
    }
    packed.begin.push_back(packed.begin.back() + length);
  }
  packed.items = at::tensor(items, at::kLong).to(device);
  packed.places = at::tensor(places, at::kLong).to(device);
  return packed;
}

}  // namespace gainlens::recommend
