#pragma once

#include "models/decoder/decoder_config.h"

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace gainlens::sweep {

/// Operations per second of the parts of a forward pass on this machine.
struct MachineRates {
  double products = 0;
  double attention = 0;
  double likelihood = 0;
};

/// Measured with a small product, a small attention and a small head, in about half a second. A busy machine gives a
/// lower rate.
/// @param head_dim  of the attention that is measured
MachineRates measured_rates(at::ScalarType dtype, std::int64_t head_dim);

/// Seconds that one sequence takes, without loading.
struct ExpectedTime {
  double layers = 0;      ///< with all statistics
  double likelihood = 0;  ///< of all tokens

  double total() const { return layers + likelihood; }
};

/// @throws InvalidArgument  as models::operations_needed
ExpectedTime expected_time(const models::DecoderConfig& config, std::int64_t positions, const MachineRates& rates);

}  // namespace gainlens::sweep
