#include "runfile/request.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/counted.h"
#include "core/knobs.h"
#include "core/nearest.h"
#include "core/number_ranges.h"
#include "runfile/first_key.h"
#include "runfile/request_fields.h"
#include "runfile/shard.h"
#include "runfile/text_layout.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>

namespace gainlens::runfile {
namespace {

constexpr const char* version_key = "statistics_version";

std::string shown(const Json& value) {
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), 160);
}

bool strictly_increasing_from(const std::vector<std::int64_t>& values, std::int64_t least) {
  return !values.empty() && values.front() >= least &&
         std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
}

/// The difference of two values of a field. Objects: of their first key that differs.
std::string difference_of(const std::string& name, const Json& stored, const Json& asked) {
  if (stored == asked) return {};
  if (stored.is_object() && asked.is_object()) {
    std::set<std::string> names;
    for (const Json& object : {stored, asked}) {
      for (const auto& [key, value] : object.items()) names.insert(key);
    }
    for (const std::string& key : names) {
      std::string line =
          difference_of(fmt::format("{}/{}", name, key), stored.value(key, Json()), asked.value(key, Json()));
      if (!line.empty()) return line;
    }
  }
  return difference_line(name, shown(stored), shown(asked));
}

/// The difference of two inputs whose checksums differ, by their names if these are known.
/// @param line  their checksums
std::string named_difference(const std::string& what, const std::string& stored, const std::string& asked,
                             const std::string& line) {
  if (stored.empty() || asked.empty()) return line;
  if (stored == asked) return fmt::format("the {} {} has changed since: {}", what, printable(stored), line);
  return difference_line("the " + what, printable(stored), printable(asked));
}

/// Keys that no field has. @throws InvalidArgument  there are some
void refuse_others(const Json& json, std::string_view where) {
  std::vector<std::string> known, unknown;
  for (const RequestField& field : request_fields()) known.push_back(field.key);
  for (const auto& [key, value] : json.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string near = did_you_mean(key, known);
    CHECK(near.empty(), "{}: key '{}' is not known{}", where, printable(key), near);
    unknown.push_back(key);
  }
  CHECK(unknown.empty(), "{}: {}", where, made_by_newer_version(unknown));
}

}  // namespace

Json Request::to_json() const {
  Json json = Json::object();
  for (const RequestField& field : request_fields()) {
    Json value = field.get(*this);
    if (field.absent.is_discarded() || value != field.absent) json[field.key] = std::move(value);
  }
  return json;
}

Request Request::from_json(const Json& json, std::string_view where) {
  CHECK(json.is_object(), "{}: is not a JSON object; a request of gainlens sweep is one", where);
  if (const auto format = json.find("format"); format != json.end() && format->is_string()) {
    throw_invalid("{}: is a run of another command ({}), and no sweep; `gainlens inspect` says what it holds", where,
                  printable(format->get<std::string>(), 40));
  }
  Request request;
  for (const RequestField& field : request_fields()) {
    const auto given = json.find(field.key);
    CHECK(given != json.end() || !(field.absent.is_discarded() || field.needed(request)),
          "{}: key '{}' is missing; this is not a request of gainlens sweep", where, field.key);
    if (given != json.end()) field.set(request, *given, where);
    // The first field. Checked before the others: another version may have other keys.
    CHECK(request.version >= 1 && request.version <= statistics_version,
          "{}: {} is {}; this gainlens reads versions 1 to {}: use the gainlens that made the run, or sweep again into "
          "another folder",
          where, version_key, request.version, statistics_version);
  }
  refuse_others(json, where);
  request.validate(where);
  return request;
}

void Request::validate(std::string_view where) const {
  CHECK(strictly_increasing_from(lengths, 1),
        "{}: 'lengths' is [{}]; it must be increasing context lengths of at least 1", where, fmt::join(lengths, ", "));
  CHECK(strictly_increasing_from(layers, 0), "{}: 'layers' is [{}]; it must be increasing layer indices", where,
        fmt::join(layers, ", "));
  for (const auto& [name, value] : {std::pair{"samples", samples},
                                    {"heads", heads},
                                    {"kv_heads", kv_heads},
                                    {"head_dim", head_dim},
                                    {"threads", threads}}) {
    CHECK(value >= 1, "{}: '{}' is {}; it must be at least 1", where, name, value);
  }
  CHECK(attention.size() == layers.size(), "{}: 'attention' names {} layers; 'layers' has {}", where, attention.size(),
        layers.size());
  for (const std::string& kind : attention) {
    CHECK(attention_window(kind), "{}: 'attention' has '{}'; allowed are 'global' and 'window:N'", where,
          printable(kind));
  }
  constexpr std::array<std::string_view, 4> dtypes = {"float64", "float32", "bfloat16", "float16"};
  CHECK(std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end(), "{}: 'dtype' is '{}'; allowed are {}", where,
        printable(dtype), fmt::join(dtypes, ", "));
  static constexpr std::array<std::string_view, 4> devices{"cpu", "cpu:composed", "cuda", "cuda:fused"};
  CHECK(std::find(devices.begin(), devices.end(), device) != devices.end(), "{}: 'device' is '{}'; allowed are {}",
        where, printable(device), fmt::join(devices, ", "));
  CHECK(estimator.name != Estimator::delta, "{}: '{}' is delta; a sweep does not have it", where, "estimator");
  const bool has_noise = estimator.name == Estimator::delta_weight_free;
  CHECK(estimator.score_noise >= 0 && estimator.score_noise <= 1e6 && (has_noise || estimator.score_noise == 0),
        "{}: '{}' is {}; only delta_weight_free has one, of 0 to 1e6", where, "score_noise", estimator.score_noise);
  CHECK(std::adjacent_find(ignored_config_keys.begin(), ignored_config_keys.end(), std::greater_equal<>()) ==
            ignored_config_keys.end(),
        "{}: '{}' is [{}]; it must be sorted names, each once", where, "ignored_config_keys",
        printable(fmt::format("{}", fmt::join(ignored_config_keys, ", "))));
  // The largest dataset that a run of this request can have: its size in bytes must fit int64.
  const std::array largest = {std::ssize(lengths),
                              samples,
                              std::ssize(layers),
                              std::max(heads, kv_heads),
                              std::max(lengths.back(), bins),
                              first_keys,
                              std::int64_t{sizeof(double)}};
  checked_elements(largest, fmt::format("{}: size of the largest dataset", where));
  CHECK(layer_kv_heads.empty() || layer_kv_heads.size() == layers.size(),
        "{}: 'layer_kv_heads' has {} numbers; 'layers' has {}", where, layer_kv_heads.size(), layers.size());
  for (const std::int64_t own : layer_kv_heads)
    CHECK(own >= 1 && kv_heads % own == 0, "{}: 'layer_kv_heads' holds {}; each must divide 'kv_heads' ({})", where,
          own, kv_heads);
  if (!spread) return;
  const std::int64_t needed = tokens_needed(layout_of(*this), lengths.back());
  CHECK(*spread >= needed, "{}: 'spread' is {}; {} samples of length {} need at least {} tokens", where, *spread,
        samples, lengths.back(), needed);
}

std::string kv_heads_in_words(const MeasuredModel& model) {
  if (model.layer_kv_heads.empty()) return counted(model.kv_heads, "KV head");
  return either_number(model.layer_kv_heads) + " KV heads";
}

std::string Request::difference(const Request& other, const InputNames& stored_names, const InputNames& names) const {
  for (const RequestField& field : request_fields()) {
    if (field.difference) {
      std::string line = field.difference(*this, other);
      if (!line.empty()) return line;
      continue;
    }
    const Json stored = field.get(*this), asked = field.get(other);
    if (stored == asked) continue;
    if (field.words) return difference_line(field.name, field.words(*this), field.words(other));
    std::string line = difference_of(field.name, stored, asked);
    if (field.input == nullptr) return line;
    return named_difference(field.key, stored_names.*field.input, names.*field.input, line);
  }
  return {};
}

Request Request::united(const Request& other) const {
  const std::string line = difference(other);
  ASSERT(line.empty(), "requests that differ cannot be united: {}", line);
  Request result = *this;
  result.lengths.clear();
  std::set_union(lengths.begin(), lengths.end(), other.lengths.begin(), other.lengths.end(),
                 std::back_inserter(result.lengths));
  result.samples = std::max(samples, other.samples);
  return result;
}

bool Request::covers(const Request& other) const {
  return difference(other).empty() && samples >= other.samples &&
         std::includes(lengths.begin(), lengths.end(), other.lengths.begin(), other.lengths.end());
}

bool Request::holds(const ShardKey& key) const {
  return std::binary_search(lengths.begin(), lengths.end(), key.length) && key.sample >= 0 && key.sample < samples;
}

}  // namespace gainlens::runfile
