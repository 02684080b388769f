#include "runfile/request.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/knobs.h"
#include "core/nearest.h"
#include "core/number_ranges.h"
#include "runfile/first_key.h"
#include "runfile/shard.h"
#include "runfile/text_layout.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::runfile {
namespace {

/// A key of a sweep's request: how it is written, read and compared.
struct RequestField {
  std::string key;
  std::function<Json(const Request&)> get;
  /// @throws InvalidArgument  the value has another type
  std::function<void(Request&, const Json&, std::string_view where)> set;

  /// What a request means that lacks the key: what held before the key existed. It is written only where the value is
  /// another one, so requests of earlier versions stay as they are. Discarded: every request has the key.
  Json absent = Json(Json::value_t::discarded);
  /// Whether this request cannot lack the key although others can.
  std::function<bool(const Request&)> needed = [](const Request&) { return false; };

  /// How a message names it: the option of `gainlens sweep` that decides it, where there is one.
  std::string name;
  /// The value in words, for differences; empty: as JSON.
  std::function<std::string(const Request&)> words;
  /// Why two requests with these values measure other numbers, in one line; empty if they do not. Without this function
  /// two values that differ do.
  std::function<std::string(const Request& stored, const Request& asked)> difference;
  /// Of an input with a checksum: its name in messages.
  std::string InputNames::*input = nullptr;
};

/// "X is A in the stored request and B in this one".
std::string difference_line(std::string_view what, std::string_view stored, std::string_view asked) {
  return fmt::format("{} is {} in the stored request and {} in this one", printable(what), stored, asked);
}

std::string shown(const Json& value) {
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), 160);
}

void expect(bool fits, const std::string& key, const Json& value, const char* allowed, std::string_view where) {
  CHECK(fits, "{}: '{}' is {}; it must be {}", where, key, shown(value), allowed);
}

// Strictly typed: no bool for a number, no 1.5 for an integer.

void read(const std::string& key, const Json& value, std::int64_t& field, std::string_view where) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || std::in_range<std::int64_t>(value.get<std::uint64_t>()));
  expect(fits, key, value, "an integer", where);
  field = value.get<std::int64_t>();
}

void read(const std::string& key, const Json& value, bool& field, std::string_view where) {
  expect(value.is_boolean(), key, value, "true or false", where);
  field = value.get<bool>();
}

void read(const std::string& key, const Json& value, std::string& field, std::string_view where) {
  expect(value.is_string(), key, value, "a string", where);
  field = value.get<std::string>();
}

template <typename T>
void read(const std::string& key, const Json& value, std::vector<T>& field, std::string_view where) {
  expect(value.is_array(), key, value, "an array", where);
  field.clear();
  for (const Json& element : value) read(key, element, field.emplace_back(), where);
}

void read(const std::string& key, const Json& value, std::map<std::string, std::string>& field,
          std::string_view where) {
  expect(value.is_object(), key, value, "an object of file names and checksums", where);
  field.clear();
  for (const auto& [name, text] : value.items()) read(key, text, field[name], where);
}

/// A field that is a member of the request.
template <typename T, typename Owner>
RequestField field_of(const char* key, T Owner::*member, std::string name = {}) {
  RequestField field;
  field.key = key;
  field.get = [member](const Request& request) { return Json(request.*member); };
  field.set = [member, key = field.key](Request& request, const Json& value, std::string_view where) {
    read(key, value, request.*member, where);
  };
  field.name = name.empty() ? field.key : std::move(name);
  return field;
}

/// The same, which requests lack in which it is `absent`.
template <typename T, typename Owner>
RequestField optional_field(const char* key, T Owner::*member, Json absent, std::string name = {}) {
  RequestField field = field_of(key, member, std::move(name));
  field.absent = std::move(absent);
  return field;
}

/// A number that may be null.
RequestField nullable_field(const char* key, std::optional<std::int64_t> Request::*member) {
  RequestField field;
  field.key = field.name = key;
  field.get = [member](const Request& request) { return request.*member ? Json(*(request.*member)) : Json(nullptr); };
  field.set = [member, key = field.key](Request& request, const Json& value, std::string_view where) {
    (request.*member).reset();
    if (!value.is_null()) read(key, value, (request.*member).emplace(), where);
  };
  return field;
}

/// An input, which differs by its checksums and is named in messages.
template <typename T>
RequestField input_field(const char* key, T Request::*member, std::string InputNames::*input) {
  RequestField field = field_of(key, member);
  field.input = input;
  return field;
}

/// They may grow.
RequestField lengths_field() {
  RequestField field = field_of("lengths", &Request::lengths);
  field.difference = [](const Request& stored, const Request& asked) -> std::string {
    const bool same = !(stored.nested && asked.nested) || stored.lengths.back() == asked.lengths.back();
    if (same) return {};
    return difference_line("the longest of lengths", std::to_string(stored.lengths.back()),
                           std::to_string(asked.lengths.back())) +
           ", and nested chunks are cut from the longest";
  };
  return field;
}

/// Absent: the chunks are consecutive.
RequestField spread_field() {
  RequestField field = nullable_field("spread", &Request::spread);
  field.set = [](Request& request, const Json& value, std::string_view where) {
    read("spread", value, request.spread.emplace(), where);
  };
  field.absent = nullptr;
  field.difference = [](const Request& stored, const Request& asked) -> std::string {
    if (stored.spread == asked.spread) return {};
    if (stored.spread && asked.spread)
      return difference_line("spread", std::to_string(*stored.spread), std::to_string(*asked.spread));
    const auto words = [](const Request& request) {
      return request.spread ? fmt::format("spread over {} tokens", *request.spread) : std::string("consecutive");
    };
    return fmt::format("chunks are {} in the stored request and {} in this one", words(stored), words(asked));
  };
  return field;
}

/// They may grow where they do not decide where chunks lie.
RequestField samples_field() {
  RequestField field = field_of("samples", &Request::samples);
  field.difference = [](const Request& stored, const Request& asked) -> std::string {
    if (!stored.spread || stored.samples == asked.samples) return {};
    return difference_line("samples", std::to_string(stored.samples), std::to_string(asked.samples)) +
           ", and this number decides where every spread chunk lies";
  };
  return field;
}

constexpr const char* estimator_name = "the estimator (--estimator, --score-noise)";

constexpr auto estimator_words = [](const Request& request) { return words_of(request.estimator); };

RequestField estimator_field() {
  RequestField field;
  field.key = "estimator";
  field.name = estimator_name;
  field.get = [](const Request& request) { return Json(std::string(name_of(request.estimator.name))); };
  field.set = [](Request& request, const Json& value, std::string_view where) {
    std::string name;
    read("estimator", value, name, where);
    request.estimator.name = parse_estimator(name, fmt::format("{}: 'estimator'", where));
  };
  field.absent = std::string(name_of(Estimator::reml));
  field.words = estimator_words;
  return field;
}

RequestField score_noise_field() {
  const auto has = [](const Request& request) { return request.estimator.name == Estimator::delta_weight_free; };
  RequestField field;
  field.key = "score_noise";
  field.name = estimator_name;
  field.get = [has](const Request& request) {
    return has(request) ? Json(request.estimator.score_noise) : Json(nullptr);
  };
  field.set = [](Request& request, const Json& value, std::string_view where) {
    expect(value.is_number(), "score_noise", value, "a number", where);
    request.estimator.score_noise = value.get<double>();
  };
  field.absent = nullptr;
  field.needed = has;
  field.words = estimator_words;
  return field;
}

RequestField ignored_field() {
  RequestField field = optional_field("ignored_config_keys", &Request::ignored_config_keys, Json::array(),
                                      "what is not read of config.json (--ignore-config-key)");
  field.words = [](const Request& request) {
    return request.ignored_config_keys.empty()
               ? std::string("nothing")
               : printable(fmt::format("{}", fmt::join(request.ignored_config_keys, ", ")));
  };
  return field;
}

/// Every key, in the order in which requests are compared: what the user sees first stands first, and a field that
/// follows from another one stands behind it.
const std::vector<RequestField>& request_fields() {
  static const std::vector<RequestField> fields = {
      field_of("statistics_version", &Request::version),
      input_field("model", &Request::model, &InputNames::model),
      input_field("text", &Request::text, &InputNames::text),
      field_of("bos_policy", &Request::bos_policy, "--bos"),
      field_of("layers", &Request::layers, "layers (--layers, --stop-at-layer)"),
      lengths_field(),
      spread_field(),
      samples_field(),
      estimator_field(),
      score_noise_field(),
      ignored_field(),
      field_of("allow_extrapolation", &Request::allow_extrapolation, "--allow-extrapolation"),
      field_of("attention", &Request::attention),
      nullable_field("bos", &Request::bos),
      field_of("device", &Request::device, "device (--device, --kernel)"),
      field_of("dtype", &Request::dtype, "--dtype"),
      field_of("family", &Request::family),
      optional_field("filtered", &Request::filtered, false),
      field_of("gated", &Request::gated),
      field_of("head_dim", &Request::head_dim),
      field_of("heads", &Request::heads),
      field_of("kv_heads", &Request::kv_heads),
      optional_field("layer_kv_heads", &Request::layer_kv_heads, Json::array()),
      field_of("max_positions", &Request::max_positions),
      field_of("nested", &Request::nested, "--nested"),
      field_of("nll", &Request::nll, "nll (--no-nll)"),
      field_of("per_query", &Request::per_query, "--per-query"),
      field_of("sink_logits", &Request::sink_logits),
      field_of("statistics", &Request::statistics, "statistics (--statistics)"),
      field_of("threads", &Request::threads, "--threads"),
      field_of("tokenizer", &Request::tokenizer),
  };
  return fields;
}

constexpr const char* version_key = "statistics_version";

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
