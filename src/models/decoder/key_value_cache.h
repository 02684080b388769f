#pragma once

#include "models/decoder/decoder_config.h"
#include "models/decoder/delta_layer.h"
#include "models/decoder/growing_rows.h"

#include <cstdint>
#include <vector>

namespace gainlens::models {

/// What a decoder keeps of the tokens of one sequence, so that the tokens after them can be computed without computing
/// these again (Decoder::extend). It serves every decoder: each layer has what its attention needs of earlier
/// positions.
///
/// - Softmax attention: the keys, normalised and rotated, and the values, of each kv head. With latent attention these
///   are the expanded ones of every head. A layer with a window keeps no position that no later query sees.
/// - A filter: what the precision of each token adds to the scores of its key.
/// - The gated delta rule: its state, and the last positions before its short convolution.
/// - Short convolutions: the last positions.
class KeyValueCache {
 public:
  struct Layer {
    GrowingRows keys, values;  ///< [kv_head, position, head_dim]
    GrowingRows key_bias;      ///< [position, 1] of a filter that has one
    DeltaState delta;
    at::Tensor convolution_past;  ///< convolution_layer()
  };

  explicit KeyValueCache(const DecoderConfig& config) : layers_(static_cast<std::size_t>(config.layers)) {}

  /// Number of tokens that it holds.
  std::int64_t length() const { return std::ssize(ids_); }
  const std::vector<std::int64_t>& ids() const { return ids_; }
  /// Forgets everything. Needed before the cache is used again after Decoder::extend() threw: its layers may then hold
  /// different numbers of tokens.
  void clear();
  /// Memory of keys, values and states.
  std::uint64_t bytes() const;

  Layer& layer(std::int64_t index) { return layers_.at(static_cast<std::size_t>(index)); }
  /// Adds tokens. Called when every layer holds them too.
  void add(const std::vector<std::int64_t>& ids) { ids_.insert(ids_.end(), ids.begin(), ids.end()); }

 private:
  std::vector<std::int64_t> ids_;
  std::vector<Layer> layers_;
};

/// New tokens of one sequence among the rows of a pass.
struct CachedSegment {
  KeyValueCache* cache = nullptr;  ///< of the tokens before them
  std::int64_t first_row = 0;      ///< of the pass
  std::int64_t rows = 0;           ///< number of new tokens

  std::int64_t past() const { return cache->length(); }
};

}  // namespace gainlens::models
