#pragma once

#include "runfile/request.h"
#include "runfile/shard.h"
#include "runfile/windows.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

/// Of run.h5; a file of another version is refused.
inline constexpr std::int64_t run_format_version = 1;
inline constexpr std::string_view run_format = "gainlens-sweep";

/// Axes of the datasets. All but `query` are dimension scales at the root of run.h5; `query` is one of each
/// /queries/<T>.
enum class Axis { length, sample, layer, head, kv_head, bin, key, query };
inline constexpr Axis root_axes[] = {Axis::length,  Axis::sample, Axis::layer, Axis::head,
                                     Axis::kv_head, Axis::bin,    Axis::key};

enum class Group { summary, profile, values, queries };
inline constexpr Group groups[] = {Group::summary, Group::profile, Group::values, Group::queries};

/// What a request must say for a dataset to exist.
enum class Presence { statistics, gate, sink_logits, nll };

std::string_view name_of(Axis axis);    ///< "kv_head"
std::string_view name_of(Group group);  ///< "summary"

/// One line of the table of datasets. Numbers of every line are stored as stores_float64() says.
struct DatasetInfo {
  Group group;
  std::string name;
  std::vector<Axis> axes;  ///< of one shard: without length and sample
  Presence presence;
  std::string unit;     ///< "value" is the unit of the value vectors
  std::string meaning;  ///< one line
  std::int64_t since;   ///< statistics version from which on runs hold it

  /// Whether a run of this request holds it. Absent quantities are absent datasets, never zeros.
  bool present(const Request& request) const;
  /// [length, sample, axes...]; of /queries/<T>, which has one length, [sample, axes...].
  std::vector<Axis> run_axes() const;
  std::vector<std::int64_t> shard_shape(const Request& request, std::int64_t length) const;
  std::vector<std::int64_t> run_shape(const Request& request, std::int64_t length) const;
  /// Of the dataset in a shard: the largest box of whole rows within 1 MiB; empty (contiguous) for all but /queries.
  std::vector<std::int64_t> shard_chunk(const Request& request, std::int64_t length) const;
  /// "summary/n_eff"; of one length "queries/512/n_eff".
  std::string path(std::int64_t length) const;
};

/// THE table: every dataset a sweep can hold, in the order in which files are written. Source: run-file.md.
const std::vector<DatasetInfo>& schema();

/// A scalar of each layer and head: what is stored of it. The lines of the table above that belong to it are made from
/// this one.
struct HeadQuantity {
  std::string_view name;
  Presence presence;
  bool variance;  ///< /summary/<name>_var
  bool profile;   ///< /profile/<name>
  bool queries;   ///< /queries/<T>/<name>
  std::string_view unit;
  std::string_view unit_squared;  ///< of the variance
  std::string_view meaning;
  Window window;                      ///< of the queries that /summary/<name> is a mean over
  std::int64_t since = 1;             ///< statistics version
  std::string_view restriction = {};  ///< which queries of the window: " whose bound is above 0"
};

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

/// A result with every dataset of the request in its shape, all NaN.
ShardResult blank_result(const Request& request, std::int64_t length);

/// Empty if the result holds exactly the datasets of the request in their shapes; else what is wrong first.
std::string result_mismatch(const ShardResult& result, const Request& request, std::int64_t length);

}  // namespace gainlens::runfile
