#pragma once

#include "analyses/cells.h"
#include "analyses/options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// A head in the ranking of sinks. Numbers are means over chunks, then over lengths.
struct SinkHead {
  std::size_t rank;    ///< 1 is the strongest
  std::int64_t layer;  ///< the model's own number
  std::int64_t head;
  std::string attention;  ///< "global" or "window:N"
  double bos_mass;        ///< mean over second-half queries
  Measured kalman_gain;   ///< this and the next three: mean over last-quarter queries
  Measured kalman_gain_scaled;
  Measured n_eff;
  Measured entropy;                    ///< nats
  Measured without_first_kalman_gain;  ///< mean over second-half queries
  Measured sink_share;  ///< share of chunks whose column mean at key 0 exceeds 0.3, over chunks and lengths (Gu et al.)
};

/// Heads by BOS mass, largest first; ties by layer and head.
struct Sinks {
  std::vector<Length> lengths;
  std::vector<SinkHead> heads;    ///< the first Options::sinks of the ranking
  std::vector<SinkHead> ranking;  ///< every head with a BOS mass
  std::size_t all_heads;          ///< length of the ranking
};

/// Missing if the run has no bos_mass.
/// @throws InvalidArgument  see sink_lengths(); Options::sinks is not positive
Maybe<Sinks> sinks(const runfile::RunReader& reader, const Options& options = {});
OrderedJson to_json(const Sinks& sinks);

}  // namespace gainlens::analyses
