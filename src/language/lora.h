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

/// @throws InvalidArgument  a setting out of range whatever the model is; one that is given while all weights are
/// trained
void check_lora(const LoraSettings& settings);

/// The adapter that these settings ask for; nothing if all weights are trained.
/// @throws InvalidArgument  as check_lora(), models::lora_modules() and models::lora_parameter_count(); a model that is
///     an adapter itself
std::optional<models::LoraOptions> trained_lora(const LoraSettings& settings, const models::CheckpointSource& source);

/// What determines the numbers of a training.
Json to_json(const LoraSettings& settings, const models::LoraOptions& options);

/// How a written adapter names its base: "organisation/name" for a model in the cache of the Hub, else the absolute
/// path.
std::string name_of_base(const std::filesystem::path& model);

/// What the memory of a training of an adapter depends on.
struct LoraHolding {
  std::int64_t filter_parameters = 0;  ///< trained too
  bool writes_whole = false;           ///< whole checkpoints are written
  std::int64_t processes = 1;          ///< that share the moments
  bool bfloat16 = false;               ///< the weights are held in it, and the adapter has a copy in it
};

/// Bytes that such a training holds besides activations: the weights, trained_bytes() of the trained parameters, and
/// where whole checkpoints are written, what is changed once more. In bfloat16 the weights take 2 bytes, and 4 while a
/// whole checkpoint is written or the answers are computed, which are in float32.
std::uint64_t lora_bytes(const models::DecoderConfig& config, const models::LoraOptions& options,
                         const LoraHolding& holding);

}  // namespace gainlens::language
