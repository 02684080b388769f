#pragma once

#include "analyses/options.h"
#include "core/json.h"
#include "runfile/first_key.h"
#include "runfile/run_reader.h"
#include "runfile/shard.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// A head is a sink on a key by its column mean (Gu et al.).
inline constexpr double column_mean_threshold = runfile::sink_threshold;

/// A context length of a run, and its chunks.
struct Length {
  std::size_t index;  ///< on the run's length axis
  std::int64_t tokens;
  std::vector<std::int64_t> samples;  ///< chunks that are complete
  std::int64_t missing;               ///< number of chunks that are not
};

/// Every length of the run that RunReader::keep_lengths() keeps, shortest first; some may have no complete chunk.
std::vector<Length> all_lengths(const runfile::RunReader& reader);
/// The lengths with at least one complete chunk, shortest first.
/// @throws InvalidArgument  no chunk is complete
std::vector<Length> usable_lengths(const runfile::RunReader& reader);

/// Lengths of the sink analyses, shortest first: `options.at` if given; else the two longest, or the only one.
/// @throws InvalidArgument  a length of `options.at` is not in the run or has no complete chunk
std::vector<Length> sink_lengths(const runfile::RunReader& reader, const Options& options);
/// How sink_lengths() chose the lengths, and how to change them, in words: "the two longest; change with --at".
std::string sink_lengths_rule(const runfile::RunReader& reader, const Options& options);

/// Positions on the layer axis of the deep layers: the last ceil(L/4) of the run's layers, or the number in the
/// options.
/// @throws InvalidArgument  options.deep_layers is not in [1, number of layers]
std::vector<std::size_t> deep_layers(const runfile::RunReader& reader, const Options& options);
/// Positions of all layers.
std::vector<std::size_t> all_layers(const runfile::RunReader& reader);
/// The model's own numbers of the layers at these positions.
std::vector<std::int64_t> original_layers(const runfile::RunReader& reader, const std::vector<std::size_t>& positions);

// Whether the second-half queries of a chunk see key 0.
using runfile::first_key_visibility;
using runfile::FirstKey;

/// Positions of the layers in which some second-half query of a chunk of `tokens` sees key 0.
std::vector<std::size_t> layers_that_see_key_0(const runfile::RunReader& reader, std::int64_t tokens);

/// "4k and 8k"
std::string list_lengths(const std::vector<Length>& lengths);
/// The lengths in tokens, as a JSON array.
OrderedJson tokens_of(const std::vector<Length>& lengths);

}  // namespace gainlens::analyses
