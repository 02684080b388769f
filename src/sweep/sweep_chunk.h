#pragma once

#include "data/chunks.h"
#include "hooks/hooked_model.h"
#include "kernels/attention_statistics.h"
#include "runfile/shard.h"

#include <cstdint>
#include <span>
#include <vector>

namespace gainlens::sweep {

/// What is measured on each chunk.
struct SweepPlan {
  std::vector<std::int64_t> layers;  ///< original indices whose heads are measured, ascending
  bool statistics = true;  ///< false: libtorch's fused attention and no statistics (the cost of the model alone)
  bool nll = true;         ///< mean next-token negative log likelihood; false leaves out the output head
  bool per_query = false;  ///< keep the numbers of every query
  bool allow_extrapolation = false;                                         ///< let T exceed the model's positions
  kernels::AttentionBackend kernel = kernels::AttentionBackend::automatic;  ///< what computes the statistics
};

struct ChunkMeasurement {
  runfile::ShardResult shard;
  std::int64_t queries_without_keys = 0;  ///< over layers and heads: their statistics are NaN and left out of means
};

/// Runs the model over one chunk, evaluation only.
/// @throws InvalidArgument  as HookedModel::forward; a chunk shorter than `shortest_length`
/// @throws RunFailed        NaN or infinity in the stream, in attention or in the logits (names the layer)
ChunkMeasurement sweep_chunk(hooks::HookedModel& model, const data::Chunk& chunk, const SweepPlan& plan);

/// Several chunks, layer by layer together where the model does so: weights that are read from files are read once for
/// all of them. The bits of each are those of sweep_chunk.
std::vector<ChunkMeasurement> sweep_chunks(hooks::HookedModel& model, std::span<const data::Chunk> chunks,
                                           const SweepPlan& plan);

}  // namespace gainlens::sweep
