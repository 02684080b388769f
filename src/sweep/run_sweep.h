#pragma once

#include "core/estimator.h"
#include "core/json.h"
#include "data/chunks.h"
#include "kernels/attention_statistics.h"
#include "runfile/process_group.h"
#include "sweep/token_source.h"

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace gainlens::sweep {

/// The chunks of a finished sweep, for what is measured on the same text afterwards.
struct SweptText {
  const std::filesystem::path& checkpoint;  ///< folder or GGUF file
  std::span<const data::Chunk> chunks;
  std::int64_t layers;  ///< the first ones, which run
};

/// All options of `gainlens sweep`.
struct SweepOptions {
  std::filesystem::path model;                   ///< checkpoint folder, or a Hugging Face cache folder
  std::vector<std::string> ignored_config_keys;  ///< of config.json, see models::IgnoredKeys
  TokenSourceOptions source;
  std::filesystem::path out;          ///< run folder
  std::vector<std::int64_t> lengths;  ///< empty: default_lengths(), as far as the text has tokens for them
  std::int64_t samples = 5;
  bool nested = false;
  bool spread = false;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;  ///< of kernels::compute_device()
  bool statistics = true;
  bool nll = true;
  bool per_query = false;
  bool allow_extrapolation = false;
  kernels::AttentionBackend kernel = kernels::AttentionBackend::automatic;  ///< what computes the statistics
  ChosenEstimator estimator;                                                ///< of lambda_obs and K
  /// Keep no layer in memory: read each layer from the files when it runs. The numbers are the same.
  bool stream_weights = false;
  /// Half-open range of layers to measure; absent: all layers that run.
  std::optional<std::pair<std::int64_t, std::int64_t>> layers;
  /// Run layers [0, N) only. There is no likelihood if the last layer does not run.
  std::optional<std::int64_t> stop_at_layer;
  /// Called by rank 0 when run.h5 is written and the model has left memory; may be empty.
  std::function<void(const SweptText&)> then;
  runfile::ProcessGroup group;  ///< the processes that share this run
  bool quiet = false;
  Json log = Json::object();  ///< what log.json keeps of this call (command line, versions)
};

struct SweepOutcome {
  std::filesystem::path run;  ///< run.h5
  std::int64_t shards = 0;    ///< chunks that the request asks for
  /// Chunks that this call measured. Rank 0 counts the chunks of all processes, another rank only its own.
  std::int64_t computed = 0;
  bool run_file_written = false;  ///< whether this process wrote run.h5; not if it already held exactly the shards
  std::int64_t queries_without_keys = 0;
  std::int64_t queries_undefined = 0;  ///< see ChunkMeasurement
  std::string bos_policy;
};

/// The lengths of a sweep that names none: of 1k, 2k, 4k, 6k, 8k and 10k those that the model has positions for. If
/// fewer than three fit: a quarter, half and all of its positions, from shortest_length on.
/// @param max_positions  of the model; absent: there is no limit
std::vector<std::int64_t> default_lengths(std::optional<std::int64_t> max_positions);

/// The longest chunk of which a text has as many as a plan asks for, at most `limit`. Fewer than shortest_length if it
/// is too short for any.
/// @param tokens  of the whole text
/// @param plan    its lengths are not read
std::int64_t longest_length(std::int64_t tokens, data::ChunkPlan plan, std::int64_t limit);

/// Measures every chunk that the run folder does not hold yet and combines the shards into run.h5. The same request
/// resumes the run. More lengths or samples extend it. A request whose chunks are all there ends at once, without
/// opening the weights. The processes of a group share the work. Their files are byte for byte those of one process
/// with as many threads as each of them has.
/// @throws InvalidArgument  the model, the text, the lengths or the folder cannot be used; thrown before any work is
///     done (CONTRIBUTING.md, "Tests and tolerances")
/// @throws RunFailed        NaN in the model (names the layer), full disk, another process of the group has ended;
///     finished shards are kept
SweepOutcome run_sweep(const SweepOptions& options);

}  // namespace gainlens::sweep
