#pragma once

#include "formats/scaled_values.h"
#include "formats/tensor_file.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/tensor_slots.h"

#include <cstdint>
#include <vector>

namespace gainlens::models {

/// A tensor of the checkpoint that a slot asks for: one entry, or numbers and scales. Both null: it is missing.
struct StoredTensor {
  const formats::TensorEntry* entry = nullptr;
  const formats::ScaledTensor* scaled = nullptr;
  /// Whether its last two dimensions stand in the other order than in unquantised checkpoints: MXFP4 keeps the inputs
  /// of a projection last.
  bool swapped = false;

  /// @pre  it is not missing
  std::vector<std::int64_t> shape() const;
};

/// The stored tensor that a slot asks for. It points into the source.
StoredTensor stored_for(const CheckpointSource& source, const TensorSlot& slot);

/// The slots outside the layers, by the names of this checkpoint: a tied embedding may be stored under the name of the
/// head.
std::vector<TensorSlot> outer_slots_of(const CheckpointSource& source);

/// Checks every tensor of a checkpoint by name, shape and dtype. No value is read. A tied pair is compared if the file
/// has both tensors.
/// @throws InvalidArgument  tensors that are missing, surplus, of the wrong shape or of a dtype that is not read (all
///     in one message); a tied pair that differs
void check_tensors(const CheckpointSource& source);

}  // namespace gainlens::models
