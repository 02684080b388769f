#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gainlens::runfile {

inline constexpr std::int64_t bins = 64;       ///< of /profile and /values/norm
inline constexpr std::int64_t first_keys = 8;  ///< first keys of first_mass, column_mean, first_norm
/// Sinks of a head that /sinks holds: the keys with the largest column means, largest first; ties: the earlier first.
inline constexpr std::int64_t stored_sinks = 16;
inline constexpr double min_stored_mean = 0.1;        ///< smallest column mean of a key in /sinks
inline constexpr std::int64_t min_sink_queries = 16;  ///< fewest queries that see a key in /sinks, see below

/// The fewest queries that must see a key, in a layer where at most `most` queries see one: the context length, or the
/// window. A key near the end of a chunk is seen by few queries, all of them near it, and those attend to it as to any
/// neighbour. So an eighth of `most` is asked for.
constexpr std::int64_t fewest_sink_queries(std::int64_t most) {
  return most / 8 > min_sink_queries ? most / 8 : min_sink_queries;
}
/// Column mean from which a key is a sink, unless another threshold is given. `without_sinks_*` leave these keys out.
inline constexpr double sink_threshold = 0.3;
inline constexpr std::int64_t largest_positions = 3;  ///< of a layer in /stream

/// Row-major numbers of one shard. NaN: no value.
struct Array {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

/// One chunk: the sample-th text of this context length.
struct ShardKey {
  std::int64_t length = 0;
  std::int64_t sample = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in the generated comparison for a pointer
  friend auto operator<=>(const ShardKey&, const ShardKey&) = default;
};

/// Everything that one chunk contributes to a run. The leading [length, sample] axes of run.h5 are added on combining.
/// Names and shapes as in the schema (runfile/schema.h); an absent quantity is an absent entry.
struct ShardResult {
  std::map<std::string, Array> summary;  ///< [layer, head], [layer, head, key], or [] for nll
  std::map<std::string, Array> profile;  ///< [layer, head, bin]
  /// norm [layer, kv_head, bin], first_norm [layer, kv_head, key], others [layer, kv_head]
  std::map<std::string, Array> values;
  /// [layer, head, query]; first_mass [layer, head, query, key]. Empty without --per-query.
  std::map<std::string, Array> queries;
  /// [layer, head, rank]. Integers are whole numbers, -1 where there is no such key; numbers are NaN there.
  std::map<std::string, Array> sinks;
  /// [layer, largest], median [layer]. Integers as in `sinks`.
  std::map<std::string, Array> stream;
  /// [layer, head, rank] Texts of the tokens in `sinks`: UTF-8 without NUL, "" where there is none. Empty if the
  /// request has no /sinks.
  std::vector<std::string> sink_text;
};

}  // namespace gainlens::runfile
