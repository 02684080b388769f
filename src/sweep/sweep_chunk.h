#pragma once

#include "data/chunks.h"
#include "hooks/hooked_model.h"
#include "kernels/attention_statistics.h"
#include "runfile/shard.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gainlens::sweep {

/// What is measured on each chunk.
struct SweepPlan {
  std::vector<std::int64_t> layers;  ///< original indices of the layers whose heads are measured, ascending
  bool statistics = true;            ///< false: the usual attention and no statistics, to time the model alone
  bool nll = true;                   ///< mean next-token negative log likelihood; false leaves out the output head
  bool per_query = false;            ///< keep the numbers of every query
  bool allow_extrapolation = false;  ///< allow a T above the model's number of positions
  kernels::AttentionBackend kernel = kernels::AttentionBackend::automatic;  ///< what computes the statistics
  ChosenEstimator estimator;                                                ///< of lambda_obs and K
  /// Readable text of a token, for the sinks that a shard names; "" where there is no tokenizer.
  std::function<std::string(tokenizers::TokenId)> token_text = [](tokenizers::TokenId) { return std::string(); };

  /// N, if only the layers [0, N) have to run: without the likelihood, none after the last measured one. Empty: all
  /// run.
  std::optional<std::int64_t> stop_at_layer() const {
    return nll || layers.empty() ? std::nullopt : std::optional(layers.back() + 1);
  }
};

struct ChunkMeasurement {
  runfile::ShardResult shard;
  /// Number of queries that saw no key, over all layers and heads. Their statistics are NaN and are left out of means.
  std::int64_t queries_without_keys = 0;
  /// Number of queries that see a key and whose lambda_obs is NaN, over all layers and heads: the estimator is not
  /// defined, or its V is too small to be given. They are left out of the means of lambda_obs.
  std::int64_t queries_undefined = 0;
};

/// Runs the model over one chunk, without gradients.
/// @throws InvalidArgument  as HookedModel::forward; a chunk shorter than `shortest_length`
/// @throws RunFailed        NaN or infinity in the stream, in attention or in the logits (names the layer)
ChunkMeasurement sweep_chunk(hooks::HookedModel& model, const data::Chunk& chunk, const SweepPlan& plan);

/// Measures several chunks. A model that streams its weights takes all chunks through one layer before the next, so
/// that each weight is read from the files once. The results are bit for bit those of sweep_chunk.
std::vector<ChunkMeasurement> sweep_chunks(hooks::HookedModel& model, std::span<const data::Chunk> chunks,
                                           const SweepPlan& plan);

}  // namespace gainlens::sweep
