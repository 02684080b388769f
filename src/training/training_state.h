#pragma once

#include "core/json.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace gainlens::training {

/// All that a training needs to go on as if it had never stopped. Data orders are functions of seed and epoch
/// (data_order.h), so that the step number stands for them.
struct TrainingState {
  std::int64_t step = 0;  ///< steps done
  Json notes;             ///< best value, history: whatever the trainer keeps in words
  std::map<std::string, at::Tensor> tensors;
};

/// One safetensors file, replaced atomically: a crash leaves the old state or the new one.
/// @throws RunFailed  disk full
void save_training_state(const std::filesystem::path& file, const TrainingState& state);

/// @throws InvalidArgument  broken, or no training state
TrainingState load_training_state(const std::filesystem::path& file);

}  // namespace gainlens::training
