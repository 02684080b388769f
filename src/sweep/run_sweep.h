#pragma once

#include "core/json.h"
#include "kernels/attention_statistics.h"
#include "runfile/process_group.h"
#include "sweep/token_source.h"

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

namespace gainlens::sweep {

/// Everything `gainlens sweep` asks for.
struct SweepOptions {
  std::filesystem::path model;  ///< checkpoint folder, or a Hugging Face cache folder
  TokenSourceOptions source;
  std::filesystem::path out;  ///< run folder
  std::vector<std::int64_t> lengths;
  std::int64_t samples = 5;
  bool nested = false;
  bool spread = false;
  at::ScalarType dtype = at::kFloat;
  bool statistics = true;
  bool nll = true;
  bool per_query = false;
  bool allow_extrapolation = false;
  kernels::AttentionBackend kernel = kernels::AttentionBackend::automatic;  ///< what computes the statistics
  bool stream_weights =
      false;  ///< keep no layer in memory, but read each from the files when it is its turn; the numbers are the same
  std::optional<std::pair<std::int64_t, std::int64_t>>
      layers;                                 ///< half-open range of layers to measure; all that run where absent
  std::optional<std::int64_t> stop_at_layer;  ///< run layers [0, N) only; without the last there is no likelihood
  runfile::ProcessGroup group;                ///< the processes that share this run
  bool quiet = false;
  Json log = Json::object();  ///< what log.json keeps of this call (command line, versions)
};

struct SweepOutcome {
  std::filesystem::path run;  ///< run.h5
  std::int64_t shards = 0;    ///< chunks the request asked for
  std::int64_t computed = 0;  ///< of these by this call: by all processes for rank 0, by itself for another
  std::int64_t queries_without_keys = 0;
  std::string bos_policy;
};

/// Measures every chunk that the run folder does not hold yet and combines the shards into run.h5. The same request
/// resumes; lengths and samples extend it; a request already covered ends at once, without opening the weights. The
/// processes of a group share the work: the files are those of one process with as many threads, byte for byte.
/// @throws InvalidArgument  see quality.md: anything about model, text, lengths or folder that is wrong, before any
///     work is done
/// @throws RunFailed        NaN on the way (names layer and chunk), full disk, another process of the group has ended;
///                          finished shards are kept
SweepOutcome run_sweep(const SweepOptions& options);

}  // namespace gainlens::sweep
