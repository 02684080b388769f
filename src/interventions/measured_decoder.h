#pragma once

#include "core/json.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/load_decoder.h"
#include "models/decoder/decoder.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

// What the options of every run here hold: dtype, device, stream_weights and ignored_config_keys.

namespace gainlens::interventions {

/// The model that is measured. @throws InvalidArgument  as models::load_own_decoder()
template <typename Options>
std::unique_ptr<models::Decoder> measured_decoder(const models::CheckpointSource& checkpoint, const Options& options) {
  models::LoadOptions load;
  load.dtype = options.dtype;
  load.device = options.device;
  load.stream = options.stream_weights;
  load.ignored_keys = options.ignored_config_keys;
  return models::load_own_decoder(checkpoint.path, load);
}

/// Names the kind of device in a request, where it is not the CPU.
template <typename Options>
void add_device(const Options& options, Json& request) {
  if (!options.device.is_cpu()) request["device"] = at::DeviceTypeName(options.device.type(), /*lower_case=*/true);
}

/// The ignored keys as a request holds them.
template <typename Options>
std::vector<std::string> ignored_keys(const Options& options) {
  std::vector<std::string> keys = options.ignored_config_keys;
  std::ranges::sort(keys);
  return keys;
}

}  // namespace gainlens::interventions
