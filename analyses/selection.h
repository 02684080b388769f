#pragma once

#include "analyses/options.h"
#include "core/json.h"
#include "runfile/run_reader.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::analyses {

inline constexpr double column_mean_threshold = 0.3;  ///< a head is a sink on a key by its column mean (Gu et al.)

/// A context length of a run and the chunks it has.
struct Length {
  std::size_t index;  ///< on the run's length axis
  std::int64_t tokens;
  std::vector<std::int64_t> samples;  ///< chunks that are complete
  std::int64_t missing;               ///< chunks that are not
};

/// Every length of the run, shortest first; some may have no complete chunk.
std::vector<Length> all_lengths(const runfile::RunReader& reader);
/// Those with at least one complete chunk.
/// @throws InvalidArgument  there is none
std::vector<Length> usable_lengths(const runfile::RunReader& reader);

/// Lengths of the sink analyses, shortest first: those of `options.at`, else 4k and 8k where present, else the two
/// longest, else the one.
/// @throws InvalidArgument  a length of `options.at` is not in the run or has no complete chunk
std::vector<Length> sink_lengths(const runfile::RunReader& reader, const Options& options);
/// The rule that sink_lengths() followed, in words.
std::string sink_lengths_rule(const runfile::RunReader& reader, const Options& options);

/// Positions on the layer axis of the deep layers: the last ceil(L/4) of the run's layers, or as many as the options
/// say.
/// @throws InvalidArgument  options.deep_layers is not in [1, number of layers]
std::vector<std::size_t> deep_layers(const runfile::RunReader& reader, const Options& options);
/// Positions of all layers.
std::vector<std::size_t> all_layers(const runfile::RunReader& reader);
/// The model's own numbers of layers given by position.
std::vector<std::int64_t> original_layers(const runfile::RunReader& reader, const std::vector<std::size_t>& positions);

/// How far an attention window hides key 0 from the second-half queries, over which BOS mass is averaged.
enum class FirstKey { seen, partly_hidden, hidden };

/// @param attention  "global" or "window:N"; query t sees the keys t-N+1..t
/// @throws InvalidArgument  neither
FirstKey first_key_visibility(const std::string& attention, std::int64_t tokens);

/// Positions of the layers whose window does not hide key 0 from every second-half query of a chunk of `tokens`.
std::vector<std::size_t> layers_that_see_key_0(const runfile::RunReader& reader, std::int64_t tokens);

/// "4k and 8k"
std::string list_lengths(const std::vector<Length>& lengths);
/// Integers as a JSON array of token counts.
OrderedJson tokens_of(const std::vector<Length>& lengths);

}  // namespace gainlens::analyses
