#pragma once

#include <cstdint>
#include <vector>

namespace gainlens::training {

/// The order in which examples are seen: each epoch a permutation of its own, drawn from seed and epoch alone. Resuming
/// needs no more than the number of examples already seen.
class DataOrder {
 public:
  /// @param examples  in an epoch, at least 1
  DataOrder(std::uint64_t seed, std::int64_t examples);

  std::int64_t epoch_of(std::int64_t position) const { return position / examples_; }
  /// Example number at a position of the endless sequence of epochs.
  std::int64_t at(std::int64_t position);

 private:
  std::uint64_t seed_;
  std::int64_t examples_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> permutation_;  // of epoch_
};

}  // namespace gainlens::training
