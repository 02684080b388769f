#pragma once

#include "data/leave_one_out.h"
#include "recommend/history_view.h"
#include "recommend/packed_sequences.h"
#include "training/replicas.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace gainlens::recommend {

/// What one process reads in a step of a training, and what the model is asked for.
struct TrainingBatch {
  PackedSequences inputs;
  at::Tensor asked;                   ///< int64 [target]: the positions that are asked; undefined: all, in order
  std::vector<std::int64_t> targets;  ///< item ids
  std::int64_t all_targets = 0;       ///< of all processes
  std::int64_t positions_before = 0;  ///< of the inputs of the processes before this one
};

/// The histories of some users for training. Without a mask: the training items but the last; each position is asked
/// for the item that follows. With a mask (the Cloze task: Sun et al., 2019), up to two copies of the last training
/// items: one in which each item is hidden with `mask_probability`, if any is, and one in which the last item alone is.
/// What is hidden follows from the user and the epoch, and from no seed of an arm. A user with one training item has no
/// position.
/// @param users  of the batch, of all processes
/// @param own    those of this process, a range of `users`
TrainingBatch training_batch(const data::LeaveOneOut& split, std::span<const std::int64_t> users, training::Range own,
                             const HistoryView& view, std::int64_t epoch, at::Device device = at::kCPU);

/// The most positions that a user can have in a step.
std::int64_t max_trained_positions(const data::LeaveOneOut& split, std::int64_t user, const HistoryView& view);

}  // namespace gainlens::recommend
