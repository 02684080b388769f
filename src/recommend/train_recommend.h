#pragma once

#include "core/json.h"
#include "data/leave_one_out.h"
#include "experiment/experiment.h"
#include "recommend/settings.h"
#include "recommend/variants.h"
#include "training/replicas.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::recommend {

using experiment::check_seeds;
using experiment::Spread;

/// One call of `gainlens train recommend`.
struct RecommendRequest {
  std::string data_name;             ///< the data file without folder and extensions, for tables
  data::InteractionOptions options;  ///< with which the data were read; a checkpoint names them
  Settings settings;
  std::vector<Variant> variants;              ///< each arm is trained with each of them; none: with `settings` alone
  bool own_settings_too = false;              ///< each arm is trained with `settings` alone beside the variants
  std::vector<std::string> arms = {"plain"};  ///< of arm_names()
  std::int64_t seeds = 1;                     ///< number of seeds: `seed`, `seed` + 1, ...
  std::uint64_t seed = 0;
  std::filesystem::path out;
  std::int64_t threads = 1;        ///< of the whole call
  std::int64_t seeds_at_once = 0;  ///< trainings side by side; 0: as many as threads, at most all
  Spread spread = Spread::batches;
  bool quiet = false;
  std::string program_version;  ///< stored in run.h5; empty: not known
};

/// @throws InvalidArgument  a name is not in arm_names() (nearest match named), or stands twice
void check_arms(const std::vector<std::string>& arms);

struct RecommendOutcome {
  std::vector<experiment::Outcome> seeds;
  std::int64_t seeds_at_once = 0;
  std::int64_t threads_of_seed = 0;
};

/// Trains each arm with each seed in OUT/ARM/seed-N, with variants in OUT/ARM/VARIANT/seed-N: a checkpoint of the best
/// epoch (config.json, model.safetensors), and result.safetensors with the learning curves, the test metrics and the
/// rank of every user. Then writes OUT/run.h5, which names an arm with a variant ARM/VARIANT. Arms with the same seed
/// begin with the same weights and see the same batches. The same request continues where it was stopped, and ends with
/// the numbers of an uninterrupted one. So does a request for more epochs, and one whose data file has another name.
/// What is finished is compared with its checksums.
///
/// @throws InvalidArgument  settings out of range; `out` holds another request (the difference is named) or foreign
///                          files; a file of a finished training is missing or has changed
/// @throws RunFailed        a loss is NaN or infinite (epoch and batch; the best model so far stays); the disk is full
RecommendOutcome train_recommend(const RecommendRequest& request, const data::LeaveOneOut& split);

/// Likewise with several processes, which all call this function. Rank 0 holds the run folder and writes run.h5. A run
/// that shares batches is continued by the same number of processes. Processes that share seeds need a common file
/// system.
/// @returns  for rank 0; without metrics for the other processes
/// @throws   also InvalidArgument: another process was asked for something else; RunFailed: another process has ended
RecommendOutcome train_recommend(const RecommendRequest& request, const data::LeaveOneOut& split,
                                 training::Replicas& replicas);

/// Writes OUT/run.h5 from all finished seeds in the folder, also those of earlier calls. A seed of fewer epochs than
/// the request now asks for is not finished: it is left out, with a notice.
/// @throws RunFailed, InvalidArgument  it cannot be written; a result of the folder is broken
void combine_seeds(const std::filesystem::path& out, const data::LeaveOneOut& split,
                   std::string_view program_version = {});

/// Everything that determines the numbers of a run, except the number of seeds and the arms: these may grow, as may the
/// variants.
/// @param processes  that train together
Json request_of(const RecommendRequest& request, const data::LeaveOneOut& split, std::int64_t threads_of_seed,
                std::int64_t processes = 1);

}  // namespace gainlens::recommend
