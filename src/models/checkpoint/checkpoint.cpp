#include "models/checkpoint/checkpoint.h"

#include "core/check.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/checkpoint_tensors.h"
#include "models/checkpoint/stored_tensors.h"
#include "models/checkpoint/torch_dtype.h"

namespace gainlens::models {

void check_checkpoint(const std::filesystem::path& path) {
  check_tensors(open_checkpoint(path));
}

Checkpoint load_checkpoint(const std::filesystem::path& path, const LoadOptions& options) {
  dtype_name(options.dtype);  // refuses a dtype that models are not computed in
  const CheckpointSource source = open_checkpoint(path, options.ignored_keys);
  check_tensors(source);
  const ComputePlace place{options.dtype, options.device};
  Checkpoint checkpoint{source.config, load_outer(source, place), source.path, source.files, source.notes};
  const std::int64_t layers = options.first_layers.value_or(source.config.layers);
  ASSERT(layers >= 1 && layers <= source.config.layers, "{} of {} layers", layers, source.config.layers);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    checkpoint.weights.layers.push_back(load_layer(source, layer, place));
  }
  return checkpoint;
}

}  // namespace gainlens::models
