#include "runfile/request.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/nearest.h"
#include "runfile/first_key.h"
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

/// The only list of the fields that are written, read and compared.
template <typename RequestType, typename Visitor>
void visit_fields(RequestType& request, Visitor&& visit) {
  visit("model", request.model);
  visit("family", request.family);
  visit("tokenizer", request.tokenizer);
  visit("text", request.text);
  visit("lengths", request.lengths);
  visit("samples", request.samples);
  visit("nested", request.nested);
  visit("bos", request.bos);
  visit("bos_policy", request.bos_policy);
  visit("layers", request.layers);
  visit("heads", request.heads);
  visit("kv_heads", request.kv_heads);
  visit("head_dim", request.head_dim);
  visit("attention", request.attention);
  visit("gated", request.gated);
  visit("sink_logits", request.sink_logits);
  visit("dtype", request.dtype);
  visit("device", request.device);
  visit("threads", request.threads);
  visit("nll", request.nll);
  visit("statistics", request.statistics);
  visit("per_query", request.per_query);
  visit("allow_extrapolation", request.allow_extrapolation);
  visit("max_positions", request.max_positions);
}

constexpr const char* version_key = "statistics_version";
constexpr const char* spread_key = "spread";  // not in visit_fields: absent if chunks are consecutive
constexpr const char *estimator_key = "estimator", *score_noise_key = "score_noise";  // absent with reml
constexpr const char* ignored_key = "ignored_config_keys";                            // absent if there are none
constexpr const char* filtered_key = "filtered";                                      // absent without a filter

std::string shown(const Json& value) {
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), 160);
}

/// Reads one field of a JSON object, strictly typed: no bool for a number, no 1.5 for an integer.
class FieldReader {
 public:
  FieldReader(const Json& object, std::string_view where) : object_(object), where_(where) {}

  template <typename T>
  void operator()(const char* name, T& field) {
    known_.emplace_back(name);
    CHECK(object_.contains(name), "{}: key '{}' is missing; this is not a request of gainlens sweep", where_, name);
    read(name, object_.at(name), field);
  }

  void refuse_others() const {
    for (const auto& [name, value] : object_.items()) {
      CHECK(std::find(known_.begin(), known_.end(), name) != known_.end(), "{}: key '{}' is not known{}", where_,
            printable(name), did_you_mean(name, known_));
    }
  }

 private:
  void expect(bool fits, const char* name, const Json& value, const char* allowed) const {
    CHECK(fits, "{}: '{}' is {}; it must be {}", where_, name, shown(value), allowed);
  }
  void read(const char* name, const Json& value, std::int64_t& field) const {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() || std::in_range<std::int64_t>(value.get<std::uint64_t>()));
    expect(fits, name, value, "an integer");
    field = value.get<std::int64_t>();
  }
  void read(const char* name, const Json& value, double& field) const {
    expect(value.is_number(), name, value, "a number");
    field = value.get<double>();
  }
  void read(const char* name, const Json& value, bool& field) const {
    expect(value.is_boolean(), name, value, "true or false");
    field = value.get<bool>();
  }
  void read(const char* name, const Json& value, std::string& field) const {
    expect(value.is_string(), name, value, "a string");
    field = value.get<std::string>();
  }
  void read(const char* name, const Json& value, std::optional<std::int64_t>& field) const {
    field.reset();
    if (!value.is_null()) read(name, value, field.emplace());
  }
  template <typename T>
  void read(const char* name, const Json& value, std::vector<T>& field) const {
    expect(value.is_array(), name, value, "an array");
    field.clear();
    for (const Json& element : value) read(name, element, field.emplace_back());
  }
  void read(const char* name, const Json& value, std::map<std::string, std::string>& field) const {
    expect(value.is_object(), name, value, "an object of file names and checksums");
    field.clear();
    for (const auto& [key, text] : value.items()) read(name, text, field[key]);
  }

  const Json& object_;
  std::string_view where_;
  std::vector<std::string> known_;
};

template <typename T>
Json as_json(const T& field) {
  return field;
}
Json as_json(const std::optional<std::int64_t>& field) {
  return field ? Json(*field) : Json(nullptr);
}

bool strictly_increasing_from(const std::vector<std::int64_t>& values, std::int64_t least) {
  return !values.empty() && values.front() >= least &&
         std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
}

/// The option that decides a field, where a message names the field by it.
std::string_view option_of(std::string_view field) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> options = {{
      {"allow_extrapolation", "--allow-extrapolation"},
      {"bos_policy", "--bos"},
      {"device", "device (--device, --kernel)"},
      {"dtype", "--dtype"},
      {"layers", "layers (--layers, --stop-at-layer)"},
      {"nested", "--nested"},
      {"nll", "nll (--no-nll)"},
      {"per_query", "--per-query"},
      {"statistics", "statistics (--statistics)"},
      {"threads", "--threads"},
  }};
  for (const auto& [name, option] : options) {
    if (name == field) return option;
  }
  return field;
}

std::string difference_line(std::string_view what, std::string_view stored, std::string_view asked) {
  return fmt::format("{} is {} in the stored request and {} in this one", printable(what), stored, asked);
}

/// The difference of a field. Objects: of their first key that differs.
std::string first_difference(const std::string& name, const Json& stored, const Json& asked) {
  if (stored == asked) return {};
  if (stored.is_object() && asked.is_object()) {
    std::set<std::string> names;
    for (const Json& object : {stored, asked}) {
      for (const auto& [key, value] : object.items()) names.insert(key);
    }
    for (const std::string& key : names) {
      const std::string line =
          first_difference(fmt::format("{}/{}", name, key), stored.value(key, Json()), asked.value(key, Json()));
      if (!line.empty()) return line;
    }
  }
  return difference_line(option_of(name), shown(stored), shown(asked));
}

/// The difference of two inputs whose checksums differ, by their names if these are known.
/// @param line  their checksums
std::string named_difference(const char* what, const std::string& stored, const std::string& asked,
                             const std::string& line) {
  if (stored.empty() || asked.empty()) return line;
  if (stored == asked) return fmt::format("{} {} has changed since: {}", what, printable(stored), line);
  return difference_line(what, printable(stored), printable(asked));
}

}  // namespace

Json Request::to_json() const {
  Json json = {{version_key, version}};
  visit_fields(*this, [&](const char* name, const auto& field) { json[name] = as_json(field); });
  if (spread) json[spread_key] = *spread;
  if (estimator.name != Estimator::reml) json[estimator_key] = std::string(name_of(estimator.name));
  if (estimator.name == Estimator::delta_weight_free) json[score_noise_key] = estimator.score_noise;
  if (!ignored_config_keys.empty()) json[ignored_key] = ignored_config_keys;
  if (filtered) json[filtered_key] = true;
  return json;
}

Request Request::from_json(const Json& json, std::string_view where) {
  CHECK(json.is_object(), "{}: is not a JSON object; a request of gainlens sweep is one", where);
  // Checked before the other keys: another version may have other keys.
  CHECK(json.contains(version_key), "{}: key '{}' is missing; this is not a request of gainlens sweep", where,
        version_key);
  Request request;
  FieldReader reader(json, where);
  reader(version_key, request.version);
  CHECK(request.version >= 1 && request.version <= statistics_version,
        "{}: {} is {}; this gainlens reads versions 1 to {}: use the gainlens that made the run, or sweep again into "
        "another folder",
        where, version_key, request.version, statistics_version);
  visit_fields(request, reader);
  if (json.contains(spread_key)) reader(spread_key, request.spread.emplace());
  if (json.contains(estimator_key)) {
    std::string name;
    reader(estimator_key, name);
    request.estimator.name = parse_estimator(name, fmt::format("{}: '{}'", where, estimator_key));
  }
  if (json.contains(score_noise_key) || request.estimator.name == Estimator::delta_weight_free)
    reader(score_noise_key, request.estimator.score_noise);
  if (json.contains(ignored_key)) reader(ignored_key, request.ignored_config_keys);
  if (json.contains(filtered_key)) reader(filtered_key, request.filtered);
  reader.refuse_others();
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
  CHECK(estimator.name != Estimator::delta, "{}: '{}' is delta; a sweep does not have it", where, estimator_key);
  const bool has_noise = estimator.name == Estimator::delta_weight_free;
  CHECK(estimator.score_noise >= 0 && estimator.score_noise <= 1e6 && (has_noise || estimator.score_noise == 0),
        "{}: '{}' is {}; only delta_weight_free has one, of 0 to 1e6", where, score_noise_key, estimator.score_noise);
  CHECK(std::adjacent_find(ignored_config_keys.begin(), ignored_config_keys.end(), std::greater_equal<>()) ==
            ignored_config_keys.end(),
        "{}: '{}' is [{}]; it must be sorted names, each once", where, ignored_key,
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
  if (!spread) return;
  const std::int64_t needed = tokens_needed(layout_of(*this), lengths.back());
  CHECK(*spread >= needed, "{}: 'spread' is {}; {} samples of length {} need at least {} tokens", where, *spread,
        samples, lengths.back(), needed);
}

std::string Request::difference(const Request& other, const InputNames& stored_names, const InputNames& names) const {
  Json stored = to_json();
  Json asked = other.to_json();
  // What the user sees first: a field that follows from another one is not compared before it.
  for (const std::string name : {version_key, "model", "text", "bos_policy", "layers"}) {
    std::string line = first_difference(name, stored.at(name), asked.at(name));
    if (line.empty()) continue;
    if (name == "model") return named_difference("the model", stored_names.model, names.model, line);
    if (name == "text") return named_difference("the text", stored_names.text, names.text, line);
    return line;
  }
  if (nested && other.nested && lengths.back() != other.lengths.back()) {
    return fmt::format(
        "the longest of lengths is {} in the stored request and {} in this one, and nested chunks are cut from the "
        "longest",
        lengths.back(), other.lengths.back());
  }
  if (spread.has_value() != other.spread.has_value()) {
    const auto shown = [](const Request& request) {
      return request.spread ? fmt::format("spread over {} tokens", *request.spread) : std::string("consecutive");
    };
    return fmt::format("chunks are {} in the stored request and {} in this one", shown(*this), shown(other));
  }
  if (spread && samples != other.samples) {
    return fmt::format(
        "samples is {} in the stored request and {} in this one, and this number decides where every spread chunk lies",
        samples, other.samples);
  }
  if (estimator != other.estimator) {
    return difference_line("the estimator (--estimator, --score-noise)", words_of(estimator),
                           words_of(other.estimator));
  }
  if (ignored_config_keys != other.ignored_config_keys) {
    const auto shown = [](const Request& request) {
      return request.ignored_config_keys.empty()
                 ? "nothing"
                 : printable(fmt::format("{}", fmt::join(request.ignored_config_keys, ", ")));
    };
    return difference_line("what is not read of config.json (--ignore-config-key)", shown(*this), shown(other));
  }
  for (Json* json : {&stored, &asked}) {
    json->erase("lengths");
    json->erase("samples");
  }
  for (const auto& [name, value] : stored.items()) {
    const std::string line = first_difference(name, value, asked.at(name));
    if (!line.empty()) return line;
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
