#pragma once

#include "models/checkpoint/compute_dtype.h"
#include "models/decoder/decoder_config.h"

#include <cstdint>
#include <optional>

namespace gainlens::models {

/// A sweep, as far as its memory depends on it.
struct MemoryOptions {
  ComputeDtype dtype = ComputeDtype::float32;
  std::int64_t positions = 0;  ///< of the longest sequence
  /// Positions of all sequences that pass a layer before the next layer is loaded; 0: `positions`.
  std::int64_t positions_together = 0;
  bool stream_weights = false;                ///< one layer at a time
  std::optional<std::int64_t> stop_at_layer;  ///< only the layers before it are loaded; then there is no likelihood
  bool statistics = true;
  bool composed = false;  ///< the statistics are those of the composed kernel, not of the streaming one
  bool likelihood = true;
  bool per_query = false;
  std::int64_t measured_layers = 0;  ///< whose statistics are kept with per_query; 0: all
  std::int64_t threads = 1;
};

/// Bytes that a sweep needs, by what needs them. Terms marked "while" are never in memory at the same time.
///
/// Below, T is positions, T' is positions_together, W width, H heads, Hk KV heads, d head_dim, M mlp_width, V
/// vocabulary; b is the size of an element of `dtype`, and a is 8 in float64, else 4.
struct MemoryNeeded {
  /// The program and its libraries: measured, a constant. Already taken when a sweep starts.
  std::uint64_t process = 0;
  /// b for each parameter; the outputs of a packed weight are rounded up to 64. With streamed weights, those outside
  /// the layers and those of the largest layer.
  std::uint64_t weights = 0;
  /// From the first layer to the last: residual streams T' b W, tables of the position encoding, packed keys and values
  /// of the statistics kernel, kept numbers of single queries.
  std::uint64_t sequences = 0;
  /// While a layer attends: the norm of the stream, q, k and v before and after rotation, the output; the statistics
  /// (12 scalars and 8 weights for each query and head) and their copies in double. With the composed kernel: q and k
  /// once more, the values and their squares in float64, and 8 + 2a bytes for each score of a block.
  std::uint64_t attention = 0;
  /// While a layer's MLP or experts run: the streams before and after it, its norm, the neurons of 512 positions (of
  /// experts: of all positions of the busiest expert, which is taken to have one and a half times its share).
  std::uint64_t mlp = 0;
  /// While the likelihood is computed: the stream and its norm, 32 bytes for each position and 16,384 words, and a tile
  /// of logits for each thread. In float64: logits of 2^26 / V positions, and as much again for their log-sum-exp.
  std::uint64_t likelihood = 0;

  /// The bytes at the peak.
  std::uint64_t total() const;
  /// What a process that has started still takes.
  std::uint64_t beyond_process() const { return total() - process; }
};

/// Estimate of the memory of a sweep of this model. tests/journeys compares it with measured peaks of the program.
///
/// Simplified: every tensor is taken to be stored in float32. Products in float64 are libtorch's, all others ours
/// (kernels/linear/product_kernel.h), whatever the processor. Left out: workspaces of the matrix library (some ten MB),
/// and freed memory that is kept beyond the peak.
///
/// @throws InvalidArgument  a number exceeds uint64; `positions` is negative
MemoryNeeded memory_needed(const DecoderConfig& config, const MemoryOptions& options);

}  // namespace gainlens::models
