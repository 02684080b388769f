#pragma once

#include <cstdint>
#include <vector>

namespace gainlens::training {

/// The order in which a training sees its examples. Each epoch is a permutation of its own, drawn from the seed and the
/// epoch alone. To resume, only the number of examples seen so far is needed.
class DataOrder {
 public:
  /// @param examples  number of examples in an epoch, at least 1
  DataOrder(std::uint64_t seed, std::int64_t examples);

  std::int64_t epoch_of(std::int64_t position) const { return position / examples_; }
  /// Index of the example at a position in the endless sequence of epochs.
  std::int64_t at(std::int64_t position);

 private:
  std::uint64_t seed_;
  std::int64_t examples_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> permutation_;  // of the epoch epoch_
};

}  // namespace gainlens::training
