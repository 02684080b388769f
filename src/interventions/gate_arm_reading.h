#pragma once

#include "interventions/gain_calibration.h"
#include "runfile/gate_arms_run.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace gainlens::interventions {

/// Where a reading is made. Its numbers choose the draws of GateArm::permuted.
struct GateContext {
  std::vector<std::int32_t> tokens;
  std::int64_t targets = 0;  ///< the last ones; fewer than there are tokens
  std::size_t document = 0;
};

/// The last `length` tokens of a document, its BOS first if it has one.
/// @param bos  whether position 0 of the document holds a BOS, which position 0 of the context then holds too
std::vector<std::int32_t> last_tokens(const std::vector<std::int32_t>& document, std::int64_t length, bool bos);

/// Runs a model with an arm in all its gates.
/// @throws InvalidArgument  the arm leaves every gate as it is
/// @throws RunFailed        as run_gate_pass(); a loss that is not finite
runfile::GateArmReading read_gate_arm(models::Decoder& model, GateArm arm, const GainCalibration& calibration,
                                      const GateContext& context, std::uint64_t seed);

}  // namespace gainlens::interventions
