#pragma once

#include "interventions/gate_arm.h"
#include "models/decoder/decoder.h"
#include "runfile/gate_arms_run.h"

#include <cstdint>
#include <map>
#include <vector>

namespace gainlens::interventions {

/// What calibration text says of the gates of a model, and what becomes of it.
struct GainCalibration {
  std::map<std::int64_t, LayerCalibration> layers;
  std::vector<runfile::CalibratedHead> heads;  ///< the same for people to read, layer by layer
};

/// Measures gates and K over the first `trained_length` positions of each document, and solves for lambda. A second
/// pass measures the means of K' that the solutions give. Memory: two numbers for each layer, head and position (and
/// dimension, where each has a gate) if positions are asked for; else it does not grow with the text.
/// @param documents  each at least `trained_length` long
/// @param positions  whether GateArm::position needs a mean for every position of a document
/// @throws RunFailed  as run_gate_pass(); the means of K' miss those of the gates by more than 1e-4
GainCalibration calibrate_gates(models::Decoder& model, const std::vector<std::vector<std::int32_t>>& documents,
                                std::int64_t trained_length, bool positions);

}  // namespace gainlens::interventions
