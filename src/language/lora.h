#pragma once

#include "core/json.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/lora_weights.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::language {

/// What a fine-tuning trains in place of all weights. A setting that is not given is left out.
struct LoraSettings {
  std::int64_t rank = 0;             ///< 0: all weights are trained
  std::optional<double> alpha;       ///< unset: twice the rank
  std::vector<std::string> targets;  ///< of models::lora_targets(); empty: all that the model has
  bool merge = false;                ///< a whole checkpoint is written in place of the adapter

  bool operator==(const LoraSettings&) const = default;
};

/// The adapter that these settings ask for; nothing if all weights are trained.
/// @throws InvalidArgument  a setting out of range; one that is given while all weights are trained; a model that is an
///     adapter itself; as models::lora_modules() and models::lora_parameter_count()
std::optional<models::LoraOptions> trained_lora(const LoraSettings& settings, const models::CheckpointSource& source);

/// What determines the numbers of a training.
Json to_json(const LoraSettings& settings, const models::LoraOptions& options);

/// How a written adapter names its base: "organisation/name" for a model in the cache of the Hub, else the absolute
/// path.
std::string name_of_base(const std::filesystem::path& model);

/// Bytes that a training of an adapter holds besides activations: the weights, 16 for each trained parameter, and where
/// whole checkpoints are written, the changed weights once more.
/// @param filter_parameters  trained too
std::uint64_t lora_bytes(const models::DecoderConfig& config, const models::LoraOptions& options,
                         std::int64_t filter_parameters, bool writes_whole);

}  // namespace gainlens::language
