#pragma once

#include "cli/findings.h"
#include "data/interactions.h"

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::cli {

/// How a checkpoint is read, and the use for which its memory is estimated.
struct MemoryQuestion {
  std::string length;  ///< context length in tokens, for example "8k"; empty: the model's number of positions
  std::string dtype;   ///< dtype of the computation
  std::vector<std::string> ignored_config_keys;  ///< of config.json, see models::IgnoredKeys
};

/// Adds the findings about a checkpoint. Stops at the first error.
/// @throws InvalidArgument  the error that makes the checkpoint unusable
void inspect_checkpoint(const std::filesystem::path& path, const MemoryQuestion& question, Findings& findings);

/// As inspect_checkpoint(), for a recommender that `train recommend` wrote (recommend::is_sasrec). It reads the
/// weights.
void inspect_recommender(const std::filesystem::path& path, Findings& findings);

/// As inspect_checkpoint(), for a run folder or run.h5.
void inspect_run(const std::filesystem::path& path, Findings& findings);

/// As inspect_checkpoint(), for a run of train recommend.
void inspect_recommend_run(const std::filesystem::path& path, Findings& findings);

/// Whether a path is a file that can only be a data set: it is neither a run nor weights nor a configuration.
bool looks_like_data_set(const std::filesystem::path& path);

/// As inspect_checkpoint(), for interactions of users with items and their leave-one-out split.
void inspect_data(const std::filesystem::path& path, const data::InteractionOptions& options, Findings& findings);

}  // namespace gainlens::cli
