#pragma once

#include "models/decoder/decoder_config.h"

#include <cstdint>
#include <string>

namespace gainlens::language {

/// Bytes of float32 weights that are trained, their gradients, and this process's share of both moments of AdamW: 16 a
/// parameter, or 8 + 8 / processes.
std::uint64_t trained_bytes(std::int64_t parameters, std::int64_t processes);

/// A fine-tuning, as far as the memory of its activations depends on it.
struct ActivationShape {
  std::int64_t tokens = 0;  ///< that go through the model together
  bool recompute = false;   ///< layers run again in the backward pass
  std::int64_t value_bytes = 4;
};

/// Estimate of the bytes that a training step needs beside weights, gradients and moments. With W the width, M the
/// MLP's width, H and Hk heads and kv heads of d dimensions, a layer keeps for each token
///   4 W                the stream and its norm, before attention and before the MLP
///   2 (H + Hk) d       queries, keys and values, and what attention gives
///   3 M                gates, neurons and their product; 2 M without gates
///   2 W                with norms after attention and MLP
///   (H + Hk) d         with norms of queries and keys
///   5 W + 4 M          with a filter: precisions, moments, and the Jacobian
/// numbers. The backward pass needs 3 M + 2 W of one layer more. With recompute, the stream of every layer is kept (2 W
/// with a filter) and all of one layer. Logits of answers take up to 128 MiB.
std::uint64_t activation_bytes(const models::DecoderConfig& config, const ActivationShape& shape);

/// What a whole training needs.
struct TrainingMemory {
  std::string where;            ///< the model, for messages
  std::uint64_t state = 0;      ///< bytes of weights, gradients and moments
  std::int64_t longest = 0;     ///< tokens of the longest row
  std::int64_t row_tokens = 0;  ///< that rows put together may have at most; a longer row goes alone
  ActivationShape shape;        ///< `tokens` follows from the others
};

/// Refuses a training that does not fit, and says what would: recomputed layers, fewer tokens at once, or shorter rows.
/// @param available  bytes
/// @throws InvalidArgument  it does not fit
void check_fits(const models::DecoderConfig& config, const TrainingMemory& memory, std::uint64_t available);

}  // namespace gainlens::language
