#pragma once

#include "data/interactions.h"
#include "kernels/gradient/packed_attention.h"
#include "recommend/sasrec_config.h"

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace gainlens::recommend {

/// Histories of several users one after another, without padding.
struct PackedSequences {
  at::Tensor items;             ///< int64 [position], ids from 1
  at::Tensor places;            ///< int64 [position]: rows of the position embedding
  kernels::PackedBounds begin;  ///< [sequence + 1]

  std::int64_t positions() const { return begin.back(); }
  std::int64_t sequences() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  at::Tensor last_rows() const;  ///< int64 [sequence]: the last position of each sequence, on the device of `items`
};

/// Packs sequences of items. Each keeps its last `positions` items. An empty sequence has no position.
/// @param device  where the tensors shall be
PackedSequences pack(std::span<const std::span<const data::ItemId>> sequences, const SasRecConfig& config,
                     at::Device device = at::kCPU);

}  // namespace gainlens::recommend
