#pragma once

#include "analyses/cells.h"
#include "analyses/options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// One row of the table of the strongest sink heads: means over chunks, then over lengths.
struct SinkHead {
  std::int64_t layer;  ///< the model's own number
  std::int64_t head;
  std::string attention;  ///< "global" or "window:N"
  double bos_mass;        ///< mean over second-half queries
  Measured kalman_gain;   ///< the others: mean over last-quarter queries
  Measured kalman_gain_scaled;
  Measured n_eff;
  Measured entropy;  ///< nats
};

/// Heads by BOS mass, largest first; equal ones by layer and head.
struct Sinks {
  std::vector<Length> lengths;
  std::vector<SinkHead> heads;  ///< at most Options::sinks
  std::size_t all_heads;        ///< heads with a BOS mass
};

/// Missing where the run has no bos_mass.
/// @throws InvalidArgument  see sink_lengths(); Options::sinks is not positive
Maybe<Sinks> sinks(const runfile::RunReader& reader, const Options& options = {});
OrderedJson to_json(const Sinks& sinks);

}  // namespace gainlens::analyses
