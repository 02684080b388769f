#pragma once

#include <cstddef>
#include <vector>

namespace gainlens {

/// The positions that a recommender reads before it recommends. Those of a user lie one after another.
struct ReadPositions {
  std::vector<std::size_t> begin = {0};  ///< [user + 1]: first position of each user
  std::vector<std::size_t> item;         ///< [position] id - 1
  std::vector<double> place;             ///< [position] from 1, in the history that the model sees
  std::vector<double> length;            ///< [position] of this history

  std::size_t users() const { return begin.size() - 1; }
  bool operator==(const ReadPositions&) const = default;
};

/// What the filter of a recommender did at each of them: means over the dimensions.
struct FilteredPositions {
  ReadPositions read;
  struct Layer {
    std::vector<double> gain;       ///< [position] K
    std::vector<double> precision;  ///< [position] lambda, of the stream that enters the layer
  };
  std::vector<Layer> layers;
  double share = 1;  ///< of the filter that is in force: below 1 while it warms up
};

}  // namespace gainlens
