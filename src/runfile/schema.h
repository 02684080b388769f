#pragma once

#include "runfile/query_windows.h"
#include "runfile/request.h"
#include "runfile/shard.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

/// Format version of run.h5. A file of another version is refused.
inline constexpr std::int64_t run_format_version = 1;
inline constexpr std::string_view run_format = "gainlens-sweep";

/// Axes of the datasets. All but `query` are dimension scales at the root of run.h5; `query` is a dimension scale of
/// each /queries/<T>.
enum class Axis { length, sample, layer, head, kv_head, bin, key, rank, largest, query };
/// The axes at the root of a run of this request: all but `query`, and those that its statistics version knows.
std::vector<Axis> root_axes(const Request& request);

enum class Group { summary, profile, values, sinks, stream, queries };
inline constexpr Group groups[] = {Group::summary, Group::profile, Group::values,
                                   Group::sinks,   Group::stream,  Group::queries};
/// Groups whose datasets have a length axis.
inline constexpr Group groups_of_all_lengths[] = {Group::summary, Group::profile, Group::values, Group::sinks,
                                                  Group::stream};

/// What a request must say for a dataset to exist.
enum class Presence { statistics, gate, sink_logits, nll };

/// What the entries of a dataset are.
enum class Kind {
  number,   ///< float32 or float64, see stores_float64(); NaN: no value
  integer,  ///< int64; -1: no value
  text      ///< variable-length UTF-8; empty: no value
};

std::string_view name_of(Axis axis);    ///< "kv_head"
std::string_view name_of(Group group);  ///< "summary"

/// One line of the table of datasets.
struct DatasetInfo {
  Group group;
  std::string name;
  std::vector<Axis> axes;  ///< of one shard: without length and sample
  Presence presence;
  std::string unit;     ///< "value" is the unit of the value vectors
  std::string meaning;  ///< one line
  std::int64_t since;   ///< the first statistics version whose runs hold it
  Kind kind = Kind::number;

  /// Whether a run of this request holds it. Absent quantities are absent datasets, never zeros.
  bool present(const Request& request) const;
  /// [length, sample, axes...]; for /queries/<T>, which has one length, [sample, axes...].
  std::vector<Axis> run_axes() const;
  std::vector<std::int64_t> shard_shape(const Request& request, std::int64_t length) const;
  std::vector<std::int64_t> run_shape(const Request& request, std::int64_t length) const;
  /// Chunk shape of the dataset in a shard: the largest box of whole rows within 1 MiB. Empty (contiguous) for all
  /// groups but /queries.
  std::vector<std::int64_t> shard_chunk(const Request& request, std::int64_t length) const;
  /// "summary/n_eff"; for a dataset of one length "queries/512/n_eff".
  std::string path(std::int64_t length) const;
};

/// The table of all datasets that a sweep can hold, in the order in which files are written. docs/run-file.md shows it;
/// a test compares the two.
const std::vector<DatasetInfo>& schema();

/// What is stored of a scalar of each layer and head.
enum class Stored {
  nowhere,
  summary_mean,  ///< /summary/<name>
  profile,       ///< the same, and /profile/<name>
  summary,       ///< /summary/<name> and <name>_var
  everywhere     ///< the same, /profile/<name> and /queries/<T>/<name>
};

/// A scalar of each layer and head: the one descriptor that the schema, the reducer of a sweep, analyses, reports and
/// the documentation read. schema() makes the lines of its datasets from it.
struct HeadQuantity {
  std::string_view name;
  std::string_view source;  ///< the kernels' scalar that it is a mean of (core/query_scalars.h); empty: computed apart
  Presence presence;
  std::string_view label;  ///< as reports show it, with the symbols of reports/page/typography.h
  std::string_view unit;
  std::string_view unit_squared;  ///< of the variance
  Window window;                  ///< the queries that /summary/<name> averages
  Stored stored;
  std::int64_t since;  ///< statistics version
  std::string_view meaning;
  std::string_view restriction = {};  ///< limits the queries of the window: " whose bound is above 0"

  bool has_variance() const { return stored == Stored::summary || stored == Stored::everywhere; }
  bool has_profile() const { return stored == Stored::profile || stored == Stored::everywhere; }
  bool has_queries() const { return stored == Stored::everywhere; }
  /// "last-quarter queries"
  std::string averaged_over() const;
};

/// Every scalar that is stored: first those of the kernels, then those of the sweep.
std::span<const HeadQuantity> head_quantities();

/// @throws InternalError  no such scalar
const HeadQuantity& head_quantity(std::string_view name);

/// float64 for a float64 request, else float32.
bool stores_float64(const Request& request);

/// Number of entries of an axis.
/// @param length  the context length: the size of the query axis
std::int64_t axis_size(Axis axis, const Request& request, std::int64_t length);

/// The coordinate of each entry: context lengths, original layer indices, else 0, 1, ...
std::vector<std::int64_t> axis_values(Axis axis, const Request& request, std::int64_t length);

const std::map<std::string, Array>& entries(const ShardResult& result, Group group);
std::map<std::string, Array>& entries(ShardResult& result, Group group);

/// A result with every dataset of the request in its shape: all NaN, -1 and "".
ShardResult blank_result(const Request& request, std::int64_t length);

/// Empty if the result holds exactly the datasets of the request in their shapes, whole numbers of at least -1 in those
/// of integers, and UTF-8 without NUL in those of text; else what is wrong first.
std::string result_mismatch(const ShardResult& result, const Request& request, std::int64_t length);

}  // namespace gainlens::runfile
