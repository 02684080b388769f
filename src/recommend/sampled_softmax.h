#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gainlens::recommend {

/// Draws items in proportion to a power of their counts, with replacement.
class ItemSampler {
 public:
  /// @param counts  [item id]; entry 0 belongs to no item. Items with count 0 count as 1
  ItemSampler(const std::vector<std::int64_t>& counts, double exponent);

  /// Ids from 1. The same seed and stream draw the same ids.
  std::vector<std::int64_t> draw(std::int64_t count, std::uint64_t seed, std::uint64_t stream) const;
  /// float32 [item]: ln of the probability of item i + 1 in one draw.
  const at::Tensor& log_probability() const { return log_probability_; }

 private:
  std::vector<double> cumulative_;  // [item], ends with 1
  at::Tensor log_probability_;
};

/// Mean of -log softmax over the target and the drawn items, where each logit is lessened by the log of the expected
/// number of its draws (log-Q correction: Bengio and Senecal, 2008). A drawn item that is the target of a row is left
/// out of this row.
/// @param hidden     [row, width]
/// @param head       [item, width]
/// @param targets    int64 [row]: rows of the head
/// @param negatives  int64 [drawn]: rows of the head, the same for all rows
/// @param log_probability  [item], as ItemSampler's
at::Tensor sampled_softmax_loss(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
                                const at::Tensor& negatives, const at::Tensor& log_probability);

}  // namespace gainlens::recommend
