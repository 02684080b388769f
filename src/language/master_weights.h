#pragma once

#include "models/checkpoint/named_tensor.h"
#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace gainlens::language {

/// Weights of which a narrow copy computes. The optimiser changes the masters, float32; the copy is rounded from them
/// before each step and gives its gradients to them. What a filter keeps without gradients is rounded too.
class MasterWeights {
 public:
  /// @param masters  what is trained: float32 leaves that require gradients. Beside an
  ///     adapter the other weights may have the type of the copy already: then both share them
  /// @param type     of the copy
  MasterWeights(const models::DecoderConfig& config, models::DecoderWeights masters, at::ScalarType type);

  models::DecoderWeights& masters() { return masters_; }
  /// Leaves that require gradients.
  const models::DecoderWeights& copy() const { return copy_; }

  /// The copy becomes the masters, rounded.
  void refresh();
  /// Adds the gradients of the copy to those of the masters, and takes them away there.
  void collect_gradients();

 private:
  models::DecoderWeights masters_, copy_;
  std::vector<at::Tensor> wide_, narrow_;  // in pairs
};

}  // namespace gainlens::language
