#pragma once

#include "core/json.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace gainlens::training {

/// Everything that a training needs to continue as if it had never stopped. The order of the data follows from the step
/// number, because it is a function of seed and epoch (data_order.h).
struct TrainingState {
  std::int64_t step = 0;        ///< number of steps done
  Json notes = Json::object();  ///< what the trainer keeps: best value, history, sums since the last evaluation
  std::map<std::string, at::Tensor> tensors;
};

/// Writes one safetensors file and replaces the old one atomically: a crash leaves either the old state or the new one.
/// @throws RunFailed  disk full
void save_training_state(const std::filesystem::path& file, const TrainingState& state);

/// @throws InvalidArgument  the file is broken, or is not a training state
TrainingState load_training_state(const std::filesystem::path& file);

}  // namespace gainlens::training
