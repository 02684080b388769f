#pragma once

#include "data/leave_one_out.h"
#include "kernels/gradient/packed_attention.h"
#include "recommend/history_view.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace gainlens::recommend {

/// Histories of several users one after another, without padding.
struct PackedSequences {
  at::Tensor items;             ///< int64 [position], ids from 1, or HistoryView::mask, or 0 where padding is seen
  at::Tensor places;            ///< int64 [position]: 0 to HistoryView::positions - 1
  at::Tensor times;             ///< float64 [position] in seconds; undefined if the view has no times
  kernels::PackedBounds begin;  ///< [sequence + 1]

  std::int64_t positions() const { return begin.back(); }
  std::int64_t sequences() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  at::Tensor last_rows() const;  ///< int64 [sequence]: the last position of each sequence, on the device of `items`
};

/// Packs histories whose next item is asked for. Each keeps the last interactions that the view shows, and ends with
/// the mask if the view has one; else an empty history has no position.
/// @param device  where the tensors shall be
/// @throws InvalidArgument  the view shows times, and a history has none
PackedSequences pack(std::span<const data::History> histories, const HistoryView& view, at::Device device = at::kCPU);

/// Packs LeaveOneOut::training_inputs() of some users.
PackedSequences pack_training(const data::LeaveOneOut& split, std::span<const std::int64_t> users,
                              const HistoryView& view, at::Device device = at::kCPU);

}  // namespace gainlens::recommend
