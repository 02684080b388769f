#include "runfile/request_fields.h"

#include "core/check.h"

#include <fmt/ranges.h>

#include <utility>

namespace gainlens::runfile {
namespace {

void expect(bool fits, const std::string& key, const Json& value, const char* allowed, std::string_view where) {
  CHECK(fits, "{}: '{}' is {}; it must be {}", where, key,
        printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), 160), allowed);
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

std::string estimator_words(const Request& request) {
  return words_of(request.estimator);
}

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

std::vector<RequestField> make_fields() {
  return {
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
}

}  // namespace

const std::vector<RequestField>& request_fields() {
  static const std::vector<RequestField> fields = make_fields();
  return fields;
}

std::string difference_line(std::string_view what, std::string_view stored, std::string_view asked) {
  return fmt::format("{} is {} in the stored request and {} in this one", printable(what), stored, asked);
}

}  // namespace gainlens::runfile
