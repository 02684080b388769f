#pragma once

#include "core/json.h"
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
  at::ScalarType dtype = at::kFloat;
  bool statistics = true;
  bool nll = true;
  bool per_query = false;
  bool allow_extrapolation = false;
  std::optional<std::pair<std::int64_t, std::int64_t>> layers;  ///< half-open range of layers to measure; all where absent
  bool quiet = false;
  Json log = Json::object();  ///< what log.json keeps of this call (command line, versions)
};

struct SweepOutcome {
  std::filesystem::path run;  ///< run.h5
  std::int64_t shards = 0;    ///< chunks the request asked for
  std::int64_t computed = 0;  ///< of these by this call
  std::int64_t queries_without_keys = 0;
  std::string bos_policy;
};

/// Measures every chunk that the run folder does not hold yet and combines the shards into run.h5. The same request resumes; lengths and
/// samples extend it; a request already covered ends at once, without opening the weights.
/// @throws InvalidArgument  see quality.md: anything about model, text, lengths or folder that is wrong, before any work is done
/// @throws RunFailed        NaN on the way (names layer and chunk), full disk; finished shards are kept
SweepOutcome run_sweep(const SweepOptions& options);

}  // namespace gainlens::sweep
