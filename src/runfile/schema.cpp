#include "runfile/schema.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/query_scalars.h"
#include "core/utf8.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace gainlens::runfile {
namespace {

// The words of core/query_scalars.h.
constexpr auto last_quarter = Window::last_quarter, second_half = Window::second_half;
constexpr auto nowhere = Stored::nowhere, summary_mean = Stored::summary_mean, profile = Stored::profile,
               summary = Stored::summary, everywhere = Stored::everywhere;
constexpr auto always = Presence::statistics;

/// Of the kernels' scalars: those that are stored.
constexpr auto kernel_scalars = std::to_array<HeadQuantity>({
#define GAINLENS_HEAD_QUANTITY(name, returned, label, unit, unit_squared, window, stored, since, meaning) \
  {#name, #name, always, label, unit, unit_squared, window, stored, since, meaning},
    GAINLENS_QUERY_SCALARS(GAINLENS_HEAD_QUANTITY)
#undef GAINLENS_HEAD_QUANTITY
});

/// Means of the same scalars over another window, and scalars that a sweep computes itself.
constexpr auto sweep_scalars = std::to_array<HeadQuantity>({
    {"gate", "", Presence::gate, "gate", "1", "1", last_quarter, everywhere, 1, "output gate sigmoid(score)"},
    {"kalman_gain_half", "kalman_gain", always, "K", "1", "1", second_half, summary, 1,
     "Kalman gain at prior precision 1"},
    {"kalman_gain_scaled_half", "kalman_gain_scaled", always, "scaled K", "1", "1", second_half, summary, 1,
     "Kalman gain of values scaled to unit variance"},
    {"without_sinks_n_eff", "", always, "n_eff without sinks", "keys", "keys^2", second_half, summary, 4,
     "Kish effective number of the keys that are no sinks"},
    {"without_sinks_kalman_gain", "", always, "K without sinks", "1", "1", second_half, summary, 4,
     "Kalman gain of the keys that are no sinks"},
    {"bos_mass", "", always, "BOS mass", "1", "1", second_half, everywhere, 1, "attention weight of key 0"},
    {"sink_bound", "", always, "bound", "1", "", second_half, summary_mean, 2,
     "lower bound of the sink lemma on the weight of key 0, 0 where vacuous"},
    {"sink_bound_gain", "", always, "bound with K", "1", "", second_half, summary_mean, 2,
     "the same bound with K o e for e"},
    {"sink_bound_vacuous", "", always, "vacuous", "1", "", second_half, summary_mean, 2,
     "1 where the bound of the sink lemma is not above 0"},
    {"sink_bound_gain_violated", "", always, "below the bound with K", "1", "", second_half, summary_mean, 2,
     "1 where the weight of key 0 is below the bound with K o e for e"},
    {"sink_bound_slack", "", always, "slack", "1", "", second_half, summary_mean, 2,
     "weight of key 0 minus the bound of the sink lemma", " whose bound is above 0"},
    {"sink_alignment", "", always, "c", "1", "", second_half, summary_mean, 2,
     "norm of the estimate without key 0 by the smallest norm of a value, at most 1"},
    {"sink_logit_mass", "", Presence::sink_logits, "sink logit's mass", "1", "1", second_half, profile, 1,
     "attention weight of the learned sink logit"},
});

std::vector<HeadQuantity> stored_quantities() {
  std::vector<HeadQuantity> all;
  for (const HeadQuantity& quantity : kernel_scalars) {
    if (quantity.stored != Stored::nowhere) all.push_back(quantity);
  }
  all.insert(all.end(), sweep_scalars.begin(), sweep_scalars.end());
  return all;
}

std::vector<DatasetInfo> make_schema() {
  std::vector<DatasetInfo> table;
  const auto add = [&](Group group, std::string name, std::vector<Axis> axes, Presence presence, std::string_view unit,
                       std::string meaning, std::int64_t since = 1, Kind kind = Kind::number) {
    table.push_back(
        {group, std::move(name), std::move(axes), presence, std::string(unit), std::move(meaning), since, kind});
  };
  const std::vector<Axis> per_head = {Axis::layer, Axis::head};
  for (const HeadQuantity& q : head_quantities()) {
    add(Group::summary, std::string(q.name), per_head, q.presence, q.unit,
        fmt::format("{}, mean over {}", q.meaning, q.averaged_over()), q.since);
  }
  for (const HeadQuantity& q : head_quantities()) {
    if (!q.has_variance()) continue;
    add(Group::summary, fmt::format("{}_var", q.name), per_head, q.presence, q.unit_squared,
        fmt::format("{}, population variance over {}", q.meaning, q.averaged_over()), q.since);
  }
  add(Group::summary, "sink_bound_slack_min", per_head, always, "1",
      "weight of key 0 minus the bound of the sink lemma, smallest over second-half queries", 2);
  const std::vector<Axis> per_key = {Axis::layer, Axis::head, Axis::key};
  add(Group::summary, "first_mass", per_key, always, "1",
      "attention weight of each of the first keys, mean over second-half queries");
  add(Group::summary, "column_mean", per_key, always, "1", "attention weight of key m, mean over queries i >= m");
  add(Group::summary, "nll", {}, Presence::nll, "nats", "mean next-token negative log likelihood");

  for (const HeadQuantity& q : head_quantities()) {
    if (!q.has_profile()) continue;
    add(Group::profile, std::string(q.name), {Axis::layer, Axis::head, Axis::bin}, q.presence, q.unit,
        fmt::format("{}, mean over each bin of queries", q.meaning), q.since);
  }
  add(Group::values, "norm", {Axis::layer, Axis::kv_head, Axis::bin}, always, "value",
      "L2 norm of the values, mean over each bin of keys");
  add(Group::values, "first_norm", {Axis::layer, Axis::kv_head, Axis::key}, always, "value",
      "L2 norm of the value of each of the first keys");
  const std::vector<Axis> per_kv_head = {Axis::layer, Axis::kv_head};
  add(Group::values, "min_norm", per_kv_head, always, "value",
      "smallest L2 norm of a value of the keys other than key 0", 2);
  add(Group::values, "variance", per_kv_head, always, "value^2",
      "population variance of the values over keys, mean over dimensions", 2);

  const std::vector<Axis> per_rank = {Axis::layer, Axis::head, Axis::rank};
  const auto sink = [&](std::string name, std::string_view unit, std::string meaning, Kind kind = Kind::number) {
    add(Group::sinks, std::move(name), per_rank, always, unit, std::move(meaning), 4, kind);
  };
  sink("position", "tokens", "position of the key in the chunk, from 0", Kind::integer);
  sink("token", "1", "id of the key's token", Kind::integer);
  sink("text", "", "the key's token in the vocabulary, in readable form", Kind::text);
  sink("queries", "queries", "number of queries that see the key", Kind::integer);
  sink("column_mean", "1", "attention weight of the key, mean over the queries that see it");
  sink("second_half_mean", "1", "attention weight of the key, mean over second-half queries");
  sink("last_quarter_mean", "1", "attention weight of the key, mean over last-quarter queries");
  sink("value_norm_ratio", "1", "L2 norm of the key's value by the median over the keys of the key/value head");
  sink("key_norm_ratio", "1", "L2 norm of the key vector, as scores use it, by the median of the key/value head");
  sink("key_query_cosine", "1", "cosine of the key vector to the mean query of the head over second-half queries");
  sink("stream_ratio", "1",
       "largest absolute entry of the hidden state at the key's position before the layer, by its median over "
       "positions");
  sink("stream_ratio_after", "1", "the same after the layer");
  sink("stream_cosine", "1", "cosine of the hidden state at the key's position before the layer to that of position 0");
  sink("stream_dimension", "1", "dimension of the largest absolute entry at the key's position before the layer",
       Kind::integer);
  const std::vector<Axis> per_largest = {Axis::layer, Axis::largest};
  const auto stream = [&](std::string name, std::string_view unit, std::string meaning, Kind kind = Kind::number) {
    add(Group::stream, std::move(name), per_largest, always, unit, std::move(meaning), 4, kind);
  };
  stream("position", "tokens", "position of a hidden state with one of the largest absolute entries after the layer",
         Kind::integer);
  stream("token", "1", "id of the token there", Kind::integer);
  stream("dimension", "1", "dimension of the largest absolute entry there", Kind::integer);
  stream("value", "stream", "largest absolute entry there");
  add(Group::stream, "median", {Axis::layer}, always, "stream",
      "median over positions of the largest absolute entry after the layer", 4);

  for (const HeadQuantity& q : head_quantities()) {
    if (!q.has_queries()) continue;
    add(Group::queries, std::string(q.name), {Axis::layer, Axis::head, Axis::query}, q.presence, q.unit,
        fmt::format("{} of each query", q.meaning), q.since);
  }
  add(Group::queries, "first_mass", {Axis::layer, Axis::head, Axis::query, Axis::key}, always, "1",
      "attention weight of each of the first keys of each query");
  return table;
}

std::vector<std::int64_t> sizes(const std::vector<Axis>& axes, const Request& request, std::int64_t length) {
  std::vector<std::int64_t> shape;
  shape.reserve(axes.size());
  for (const Axis axis : axes) shape.push_back(axis_size(axis, request, length));
  return shape;
}

}  // namespace

std::string_view name_of(Axis axis) {
  constexpr std::array<std::string_view, 10> names = {"length", "sample", "layer", "head",    "kv_head",
                                                      "bin",    "key",    "rank",  "largest", "query"};
  return names.at(static_cast<std::size_t>(axis));
}

std::string_view name_of(Group group) {
  constexpr std::array<std::string_view, 6> names = {"summary", "profile", "values", "sinks", "stream", "queries"};
  return names.at(static_cast<std::size_t>(group));
}

std::vector<Axis> root_axes(const Request& request) {
  std::vector<Axis> axes = {Axis::length, Axis::sample, Axis::layer, Axis::head, Axis::kv_head, Axis::bin, Axis::key};
  if (request.version >= 4) axes.insert(axes.end(), {Axis::rank, Axis::largest});
  return axes;
}

const std::vector<DatasetInfo>& schema() {
  static const std::vector<DatasetInfo> table = make_schema();
  return table;
}

std::string HeadQuantity::averaged_over() const {
  return fmt::format("{} queries{}", window == Window::last_quarter ? "last-quarter" : "second-half", restriction);
}

std::span<const HeadQuantity> head_quantities() {
  static const std::vector<HeadQuantity> quantities = stored_quantities();
  return quantities;
}

const HeadQuantity& head_quantity(std::string_view name) {
  const auto all = head_quantities();
  const auto found = std::find_if(all.begin(), all.end(), [&](const HeadQuantity& q) { return q.name == name; });
  ASSERT(found != all.end(), "{} is not a stored scalar of a layer and head", name);
  return *found;
}

bool stores_float64(const Request& request) {
  return request.dtype == "float64";
}

std::int64_t axis_size(Axis axis, const Request& request, std::int64_t length) {
  const std::array sizes = {std::ssize(request.lengths),
                            request.samples,
                            std::ssize(request.layers),
                            request.heads,
                            request.kv_heads,
                            bins,
                            first_keys,
                            stored_sinks,
                            largest_positions,
                            length};
  return sizes.at(static_cast<std::size_t>(axis));
}

std::vector<std::int64_t> axis_values(Axis axis, const Request& request, std::int64_t length) {
  if (axis == Axis::length) return request.lengths;
  if (axis == Axis::layer) return request.layers;
  std::vector<std::int64_t> values(static_cast<std::size_t>(axis_size(axis, request, length)));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

bool DatasetInfo::present(const Request& request) const {
  if (request.version < since) return false;
  if (presence == Presence::nll) return request.nll;
  if (!request.statistics || (group == Group::queries && !request.per_query)) return false;
  return presence == Presence::statistics || (presence == Presence::gate ? request.gated : request.sink_logits);
}

std::vector<Axis> DatasetInfo::run_axes() const {
  std::vector<Axis> result =
      group == Group::queries ? std::vector{Axis::sample} : std::vector{Axis::length, Axis::sample};
  result.insert(result.end(), axes.begin(), axes.end());
  return result;
}

std::vector<std::int64_t> DatasetInfo::shard_shape(const Request& request, std::int64_t length) const {
  return sizes(axes, request, length);
}

std::vector<std::int64_t> DatasetInfo::run_shape(const Request& request, std::int64_t length) const {
  return sizes(run_axes(), request, length);
}

std::vector<std::int64_t> DatasetInfo::shard_chunk(const Request& request, std::int64_t length) const {
  if (group != Group::queries) return {};
  constexpr std::int64_t max_values = (1 << 20) / sizeof(double);
  std::vector<std::int64_t> chunk = shard_shape(request, length);
  std::int64_t room = max_values;
  for (std::size_t axis = chunk.size(); axis-- > 0;) {
    chunk[axis] = axis == 0 ? 1 : std::min(chunk[axis], std::max<std::int64_t>(room, 1));
    room /= chunk[axis];
  }
  return chunk;
}

std::string DatasetInfo::path(std::int64_t length) const {
  if (group == Group::queries) return fmt::format("{}/{}/{}", name_of(group), length, name);
  return fmt::format("{}/{}", name_of(group), name);
}

const std::map<std::string, Array>& entries(const ShardResult& result, Group group) {
  constexpr std::array members = {&ShardResult::summary, &ShardResult::profile, &ShardResult::values,
                                  &ShardResult::sinks,   &ShardResult::stream,  &ShardResult::queries};
  return result.*members.at(static_cast<std::size_t>(group));
}

std::map<std::string, Array>& entries(ShardResult& result, Group group) {
  return const_cast<std::map<std::string, Array>&>(entries(std::as_const(result), group));
}

ShardResult blank_result(const Request& request, std::int64_t length) {
  ShardResult result;
  for (const DatasetInfo& info : schema()) {
    if (!info.present(request)) continue;
    Array array{info.shard_shape(request, length), {}};
    const auto elements = static_cast<std::size_t>(checked_elements(array.shape, info.name));
    if (info.kind == Kind::text) {
      result.sink_text.assign(elements, "");
      continue;
    }
    array.values.assign(elements, info.kind == Kind::integer ? -1 : std::numeric_limits<double>::quiet_NaN());
    entries(result, info.group).emplace(info.name, std::move(array));
  }
  return result;
}

namespace {

/// Whether a number is whole, and from -1 to 2^53, up to which a double counts exactly.
bool is_stored_integer(double value) {
  return value >= -1 && value <= 0x1p53 && value == std::floor(value);
}

std::string text_mismatch(const ShardResult& result, const DatasetInfo& info, const Request& request,
                          std::int64_t length) {
  const std::int64_t elements = checked_elements(info.shard_shape(request, length), info.name);
  if (std::ssize(result.sink_text) != elements)
    return fmt::format("{} has {} texts; the request makes it {}", info.path(length), result.sink_text.size(),
                       elements);
  const bool sound = std::all_of(result.sink_text.begin(), result.sink_text.end(), [](const std::string& text) {
    return !first_invalid_utf8(text) && text.find('\0') == std::string::npos;
  });
  return sound ? "" : fmt::format("{} holds a text that is not UTF-8 without NUL", info.path(length));
}

}  // namespace

std::string result_mismatch(const ShardResult& result, const Request& request, std::int64_t length) {
  for (const DatasetInfo& info : schema()) {
    if (!info.present(request)) continue;
    if (info.kind == Kind::text) {
      if (const std::string wrong = text_mismatch(result, info, request, length); !wrong.empty()) return wrong;
      continue;
    }
    const auto& found = entries(result, info.group);
    const auto entry = found.find(info.name);
    if (entry == found.end()) return fmt::format("{} is missing", info.path(length));
    const std::vector<std::int64_t> shape = info.shard_shape(request, length);
    if (entry->second.shape != shape || std::ssize(entry->second.values) != checked_elements(shape, info.name)) {
      return fmt::format("{} has shape [{}] and {} values; the request makes it [{}]", info.path(length),
                         fmt::join(entry->second.shape, ", "), entry->second.values.size(), fmt::join(shape, ", "));
    }
    if (info.kind != Kind::integer) continue;
    const auto wrong = std::find_if_not(entry->second.values.begin(), entry->second.values.end(), is_stored_integer);
    if (wrong != entry->second.values.end())
      return fmt::format("{} holds {}; it must hold whole numbers from -1", info.path(length), *wrong);
  }
  const bool has_text = std::any_of(schema().begin(), schema().end(), [&](const DatasetInfo& info) {
    return info.kind == Kind::text && info.present(request);
  });
  if (!has_text && !result.sink_text.empty()) return "texts of sinks are no dataset of this request";
  for (const Group group : groups) {
    for (const auto& [name, array] : entries(result, group)) {
      const bool known = std::any_of(schema().begin(), schema().end(), [&, &key = name](const DatasetInfo& info) {
        return info.group == group && info.name == key && info.kind != Kind::text && info.present(request);
      });
      if (!known) return fmt::format("{}/{} is no dataset of this request", name_of(group), name);
    }
  }
  return {};
}

}  // namespace gainlens::runfile
