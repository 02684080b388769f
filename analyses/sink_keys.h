#pragma once

#include "analyses/cells.h"
#include "analyses/selection.h"
#include "analyses/token_class.h"
#include "core/json.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// A key that is a sink of one head in one chunk: its column mean is at least the threshold, and enough queries
/// see it (runfile::fewest_sink_queries). Numbers that the run does not have are NaN, integers -1.
struct SinkKey {
  std::int64_t length;  ///< in tokens
  std::int64_t sample;
  std::int64_t layer;  ///< the model's own number
  std::int64_t head;
  std::int64_t position;  ///< in the chunk, from 0
  std::int64_t token;     ///< id
  std::string text;       ///< as the vocabulary has it, readable; untrusted: printable() before it is shown
  TokenClass token_class;
  double column_mean;        ///< mean weight over the queries that see the key (Gu et al.)
  double second_half_mean;   ///< mean weight over second-half queries, 0 where a query does not see the key
  double last_quarter_mean;  ///< the same over last-quarter queries
  std::int64_t queries;      ///< that see the key
  double value_norm_ratio;   ///< |v| by the median over the keys of the same key/value head
  double key_norm_ratio;     ///< |k| by that median, after rotation
  double key_query_cosine;   ///< to the head's mean second-half query
  double stream_ratio;       ///< max_i |h_i| before the layer by its median over positions
  double stream_ratio_after;
  double stream_cosine;  ///< of the hidden state before the layer to that of position 0
  std::int64_t stream_dimension;
};

/// Positions of a group in one chunk, ascending.
struct ChunkPositions {
  std::int64_t sample;
  std::vector<std::int64_t> positions;
};

/// Share of the attention of a head's second-half queries that keys take: those whose column mean is at least
/// min_counted_mean().
struct SinkMass {
  double value;   ///< mean over chunks; NaN where no key can be counted
  bool at_least;  ///< in some chunk the run's list of keys is full, so that further keys may belong to it
};

/// Keys of a layer whose tokens have the same text, over the chunks of a length: all that count towards the sink mass,
/// and all sinks. Keys of one text share the attention of a head, so each may stay below the threshold of a sink.
struct SinkGroup {
  std::int64_t length;
  std::int64_t layer;
  std::string text;
  std::int64_t token;  ///< id of the first key
  TokenClass token_class;
  std::vector<ChunkPositions> positions;  ///< by chunk, ascending; chunks without a position are left out
  std::int64_t chunks;                    ///< in which it has a position
  std::int64_t count;                     ///< positions, over all chunks
  bool has_sink;                          ///< one of its keys is a sink of some head
  std::vector<double> mass;  ///< [head] sink mass of its keys: sum of second_half_mean, mean over all chunks
  double value_norm_ratio;   ///< mean over its keys; NaN if the run does not have it
  double stream_ratio;
};

/// A position that is a sink in one chunk: in which layers it lives.
struct SinkLife {
  std::int64_t length;
  std::int64_t sample;
  std::int64_t position;
  std::int64_t token;
  std::string text;
  TokenClass token_class;
  std::vector<std::int64_t> layers;  ///< in which it is a sink of some head, ascending; the model's numbers
};

/// Sink mass as a mean over chunks and heads. NaN if no key can be counted.
struct SinkShares {
  Length length;
  double total;                               ///< over layers
  std::vector<double> by_layer;               ///< [layer position]
  std::map<TokenClass, double> by_class;      ///< over layers; every class
  std::map<TokenClass, std::int64_t> keys;    ///< number of (chunk, layer, head, key); every class
  std::map<TokenClass, std::int64_t> chunks;  ///< number of chunks with such a key; every class
  std::int64_t sink_heads;                    ///< heads with a sink in some chunk
  std::int64_t early_heads;                   ///< those of them whose sinks no second-half query sees
};

/// The sinks of a run, wherever they are.
struct SinkKeys {
  double threshold;
  bool first_keys_only;           ///< the run stores column means of keys 0 to 7 alone (statistics version 3 and lower)
  std::vector<Length> lengths;    ///< with a complete chunk, shortest first
  std::vector<SinkKey> keys;      ///< by length, sample, layer, head; in each the largest column mean first
  std::vector<SinkKey> counted;   ///< the keys of the sink mass, in the same order
  std::vector<SinkGroup> groups;  ///< by length, layer; in each the largest mass of a head first
  std::vector<SinkLife> lives;    ///< by length, sample, position
  std::vector<SinkShares> shares;  ///< one for each of `lengths`
  /// [length, sample, layer, head] Sink mass: sum of second_half_mean over the head's counted keys; 0 if it has none.
  /// NaN where the chunk is missing or has no key that enough queries see.
  Cells mass;
  /// [length, sample, layer, head] The same over `keys` alone: the weight of the keys that are sinks.
  Cells mass_of_sinks;
  /// [length, sample, layer, head] 1 where the run's list of 16 keys is full and all of them are counted, else 0.
  Cells full;
  std::int64_t full_heads;  ///< number of (chunk, layer, head) whose list is full

  /// Sink mass of a head: the one number that every list, map, table and page shows.
  /// @param layer  position on the layer axis
  SinkMass mass_of(const Length& length, std::size_t layer, std::size_t head) const;
};

/// Column mean from which a key counts towards the sink mass: 1 / sqrt(most), and at least what a run stores (0.1).
/// docs/analyses/sinks.md says why.
/// @param most  queries that see a key of the layer at most: the context length, or the window where that is shorter
double min_counted_mean(std::int64_t most);

/// False for runs of statistics version 3 and lower, and for runs without statistics.
bool has_sink_keys(const runfile::RunReader& reader);

/// Every key of the run whose column mean is at least the threshold. A run without /sinks gives those of keys 0 to 7,
/// without texts and ratios: SinkKeys::first_keys_only.
/// @param at  lengths in tokens; empty: every length of the run
/// @throws InvalidArgument  the threshold is not in [.1, 1]; the run has no statistics or no complete chunk;
///     a length of `at` is not in the run or has no complete chunk; /sinks holds what cannot be
SinkKeys sink_keys(const runfile::RunReader& reader, double threshold = column_mean_threshold,
                   const std::vector<std::int64_t>& at = {});

/// How a token is shown on one line: its text in quotation marks, printable; without a text "token 17".
std::string label_of(const std::string& text, std::int64_t token);

/// {"sinks": [..]}: one object for each key, with null where the run has no number.
OrderedJson to_json(const SinkKeys& sinks);

}  // namespace gainlens::analyses
