#include "training/data_order.h"

#include "core/check.h"
#include "core/random.h"

#include <numeric>

namespace gainlens::training {

DataOrder::DataOrder(std::uint64_t seed, std::int64_t examples) : seed_(seed), examples_(examples) {
  ASSERT(examples > 0, "data order: there are no examples");
}

std::int64_t DataOrder::at(std::int64_t position) {
  const std::int64_t epoch = epoch_of(position);
  if (epoch != epoch_) {
    permutation_.resize(static_cast<std::size_t>(examples_));
    std::iota(permutation_.begin(), permutation_.end(), std::int64_t{0});
    Random random(seed_, static_cast<std::uint64_t>(epoch));
    random.shuffle(permutation_);
    epoch_ = epoch;
  }
  return permutation_[static_cast<std::size_t>(position % examples_)];
}

}  // namespace gainlens::training
