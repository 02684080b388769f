#pragma once

#include "analyses/selection.h"
#include "analyses/sink_keys.h"
#include "reports/measured.h"
#include "reports/sweep/sweep_run.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gainlens::reports {

/// How much of its attention a head gives to sinks: means over the chunks of one length, second-half queries.
struct MappedHead {
  std::size_t layer_position;  ///< on the run's layer axis
  std::int64_t layer;          ///< the model's own number
  std::int64_t head;
  std::string attention;    ///< "global" or "window:N"
  analyses::SinkMass mass;  ///< of a run that measured BOS alone, its BOS mass. NaN if missing
  bool hidden;  ///< of a run that measured BOS alone: BOS is outside the window, so nothing is known of sinks
  bool is_sink;
  bool elsewhere;                ///< its strongest token is not BOS
  std::string token;             ///< with the most mass, safe to show; empty if no key has mass
  bool token_alone;              ///< all mass is that token's
  Measured value_ratio;          ///< norm of that token's value by that of the others
  Measured stream_ratio;         ///< largest |h| before the layer at that token, by its median over positions
  bool early = false;            ///< a sink, and a window hides its sinks from all queries of the second half
  std::string early_token = {};  ///< the strongest of those sinks, safe to show
};

/// The sinks of a run at its longest length, as far as it measured them.
struct SinkMap {
  analyses::Length length;
  bool everywhere;                ///< every key was looked at; else BOS alone
  double threshold;               ///< of the column mean if every key was looked at; else of BOS mass
  std::vector<MappedHead> heads;  ///< layer by layer

  std::size_t sinks() const;  ///< number of heads that have a sink
  std::size_t early() const;  ///< number of those that have it for early queries only
};

/// Missing if the run has no BOS mass.
/// @throws InvalidArgument  see analyses::usable_lengths()
Maybe<SinkMap> sink_map(const SweepRun& run);
/// The map of sinks that were found wherever they are.
SinkMap sink_map_of_keys(const runfile::RunReader& reader, const analyses::SinkKeys& sinks);

/// The heads with the largest mass first, ties by layer and head; at most `most`. Of a run that measured BOS alone,
/// those that are sinks.
std::vector<const MappedHead*> strongest(const SinkMap& map, std::size_t most);

/// "0.612"; "≥ 0.612" where further keys may belong to it.
std::string shown(const analyses::SinkMass& mass);

/// What the map shows, in plain words: which layers put how much of their attention on which tokens, and how long the
/// values of these are. Apart from tokens it has no character that a medium would take for markup.
/// @param token  dresses a token for the medium
std::string sink_sentence(const SinkMap& map, const std::function<std::string(const std::string&)>& token);

}  // namespace gainlens::reports
