#include "models/families/rope_config.h"

#include "core/check.h"
#include "core/nearest.h"

#include <array>
#include <cmath>
#include <map>

namespace gainlens::models {
namespace {

constexpr double max_base = 1e12;
constexpr double max_factor = 1e6;
constexpr std::int64_t max_original = std::int64_t{1} << 31;
constexpr std::string_view original_key = "original_max_position_embeddings";

/// What one object says. The base and the rotated share are optional, since they may stand outside of the object.
struct RopeObject {
  std::string name;  ///< its name in messages
  RopeConfig rope;
  std::optional<double> base;
  std::optional<double> rotated;
};

/// What stands outside of the objects.
struct Beside {
  ConfigReader& outer;
  const RopeKeys& keys;
  std::int64_t max_positions;
  std::optional<std::int64_t> original;  ///< original_max_position_embeddings of the file, or of the family
};

std::string rope_type(ConfigReader& object) {
  const bool newer = object.find_non_null("rope_type") != nullptr, older = object.find_non_null("type") != nullptr;
  const std::string type = newer ? object.text("rope_type") : older ? object.text("type") : "default";
  CHECK(!newer || !older || object.text("type") == type, "{}: {} is '{}' and {} is '{}'; they must agree",
        object.where(), object.quoted("rope_type"), printable(type), object.quoted("type"),
        printable(object.text("type")));
  return type;
}

RopeScaling scaling_named(const ConfigReader& object, const std::string& type, const Beside& beside) {
  if (type == "dynamic" && beside.keys.alpha_stretches) return RopeScaling::stretched_base;
  if (type == "yarn" && beside.keys.yarn_is_longrope) return RopeScaling::longrope;
  static const std::map<std::string, RopeScaling, std::less<>> known = {{"default", RopeScaling::none},
                                                                        {"linear", RopeScaling::linear},
                                                                        {"llama3", RopeScaling::llama3},
                                                                        {"yarn", RopeScaling::yarn},
                                                                        {"longrope", RopeScaling::longrope},
                                                                        {"su", RopeScaling::longrope},
                                                                        {"proportional", RopeScaling::proportional}};
  if (const auto found = known.find(type); found != known.end()) return found->second;
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const auto& [name, scaling] : known) names.push_back(name);
  throw_invalid("{}: {} is '{}', which is not supported; default, linear, llama3, yarn, longrope or proportional{}",
                object.where(), object.quoted("rope_type"), printable(type), did_you_mean(type.substr(0, 100), names));
}

/// A number that may be absent or null.
std::optional<double> optional_number(ConfigReader& object, std::string_view key, double low, double high) {
  if (object.find_non_null(key) == nullptr) return std::nullopt;
  return object.number(key, low, high);
}

std::optional<std::int64_t> original_in(ConfigReader& reader) {
  if (reader.find_non_null(original_key) == nullptr) return std::nullopt;
  return reader.integer(original_key, 1, max_original);
}

/// The original positions in an object for one kind of layer: the reference does not read the key outside of it.
std::int64_t original_of_kind(ConfigReader& object, const Beside& beside) {
  const std::int64_t original = original_in(object).value_or(beside.max_positions);
  CHECK(beside.original.value_or(original) == original,
        "{}: {} is {}, and the Python reference ignores it and computes with {}: give --ignore-config-key {}, or write "
        "{} as {}",
        beside.outer.where(), beside.outer.quoted(original_key), *beside.original, original, original_key,
        object.quoted(original_key), *beside.original);
  return original;
}

/// The original positions of llama3 and yarn. Transformers 5 writes the value outside of the object over the one in
/// it, 4.57 does not.
/// @param has_default  without a value in the object, 4.57 takes max_position_embeddings; else it stops
std::int64_t original_positions(ConfigReader& object, const Beside& beside, bool has_default) {
  if (beside.keys.by_window) return original_of_kind(object, beside);
  const auto inner = original_in(object);
  if (!beside.original) return inner.value_or(beside.max_positions);
  if (!inner && !has_default) return *beside.original;
  CHECK(inner.value_or(beside.max_positions) == *beside.original,
        "{}: {} is {} and {} is {}; version 4.57 of the Python reference computes with the first, version 5 with the "
        "second: give --ignore-config-key {} to compute with the first, or write the right number in both places of a "
        "copy of the file",
        object.where(), inner ? object.quoted(original_key) : "'max_position_embeddings'",
        inner.value_or(beside.max_positions), beside.outer.quoted(original_key), *beside.original, original_key);
  return *beside.original;
}

/// The original positions of longrope: the value outside of the object comes first in all versions.
std::int64_t original_of_longrope(ConfigReader& object, const Beside& beside, bool states_magnitude) {
  if (beside.keys.by_window) return original_of_kind(object, beside);
  const auto inner = original_in(object);
  if (!beside.original) {
    // Version 4.57 takes max_position_embeddings. Without a factor or an attention factor it stops.
    CHECK(
        inner.value_or(beside.max_positions) == beside.max_positions || !states_magnitude,
        "{}: {} is {} and 'max_position_embeddings' is {}; version 5 of the Python reference computes with the first, "
        "version 4.57 with the second: write the right number as '{}' outside of the object in a copy of the file",
        object.where(), object.quoted(original_key), *inner, beside.max_positions, original_key);
    return inner.value_or(beside.max_positions);
  }
  if (inner.value_or(*beside.original) != *beside.original) {
    const bool stated = beside.outer.find_non_null(original_key) != nullptr;
    beside.outer.note(fmt::format(
        "{} is {}; as in the Python reference it is not used: {} is {}", object.quoted(original_key), *inner,
        stated ? "'original_max_position_embeddings' outside of it comes first, and"
               : "this family reads the key outside of the object alone, and without it the value",
        *beside.original));
  }
  return *beside.original;
}

void parse_llama3(ConfigReader& object, const Beside& beside, RopeConfig& rope) {
  rope.factor = object.number("factor", 1, max_factor);
  rope.low_frequency_factor = object.number("low_freq_factor", 1e-6, max_factor);
  rope.high_frequency_factor = object.number("high_freq_factor", 1e-6, max_factor);
  rope.original_max_positions = original_positions(object, beside, /*has_default=*/false);
  CHECK(rope.high_frequency_factor > rope.low_frequency_factor, "{}: {} is {} and {} is {}; the first must be greater",
        object.where(), object.quoted("high_freq_factor"), rope.high_frequency_factor, object.quoted("low_freq_factor"),
        rope.low_frequency_factor);
}

/// m(s, a) of the header; 1 if nothing is scaled.
double magnitude(double factor, double scale) {
  return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

void parse_yarn(ConfigReader& object, const Beside& beside, RopeConfig& rope) {
  rope.original_max_positions = original_positions(object, beside, /*has_default=*/true);
  const double ratio = static_cast<double>(beside.max_positions) / static_cast<double>(rope.original_max_positions);
  rope.factor = optional_number(object, "factor", 1, max_factor).value_or(ratio);
  CHECK(rope.factor >= 1,
        "{}: {} is absent and max_position_embeddings / original_max_position_embeddings is {}; the factor must be at "
        "least 1",
        object.where(), object.quoted("factor"), rope.factor);
  rope.beta_fast = optional_number(object, "beta_fast", 1e-6, max_factor).value_or(32);
  rope.beta_slow = optional_number(object, "beta_slow", 1e-6, max_factor).value_or(1);
  CHECK(rope.beta_fast >= rope.beta_slow, "{}: {} is {} and {} is {}; the first must not be smaller", object.where(),
        object.quoted("beta_fast"), rope.beta_fast, object.quoted("beta_slow"), rope.beta_slow);
  rope.truncate = object.boolean("truncate", true);
  object.find("finetuned");  // in early yarn checkpoints; has no effect

  const double mscale = optional_number(object, "mscale", 0, max_factor).value_or(0);
  const double mscale_all_dim = optional_number(object, "mscale_all_dim", 0, max_factor).value_or(0);
  const double derived = mscale != 0 && mscale_all_dim != 0
                             ? magnitude(rope.factor, mscale) / magnitude(rope.factor, mscale_all_dim)
                             : magnitude(rope.factor, 1);
  rope.attention_factor = optional_number(object, "attention_factor", 1e-6, max_factor).value_or(derived);
  if (mscale_all_dim != 0) rope.score_magnitude = magnitude(rope.factor, mscale_all_dim);

  // In published files. Two kinds of programs compute different numbers from it.
  const double other = optional_number(object, "attn_factor", 1e-6, max_factor).value_or(1);
  CHECK(other == 1,
        "{}: {} is {}; the Python reference ignores this key and multiplies cos and sin by {}, other programs by {}: "
        "give --ignore-config-key {} to compute as the reference, or replace the key by 'attention_factor' in a copy "
        "of the file",
        object.where(), object.quoted("attn_factor"), other, *rope.attention_factor, *rope.attention_factor * other,
        object.unquoted("attn_factor"));
}

/// HunYuan's meaning of "dynamic": a fixed `alpha` stretches the base, and the other keys compute nothing. Without
/// alpha the frequencies depend on the length of the text.
void parse_stretched_base(ConfigReader& object, RopeConfig& rope) {
  CHECK(
      object.find_non_null("alpha") != nullptr,
      "{}: {} is 'dynamic', which is not supported without 'alpha': frequencies that depend on the length of the text",
      object.where(), object.quoted("rope_type"));
  rope.factor = object.number("alpha", 1, max_factor);
  for (const char* key : {"factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"}) object.find(key);
}

/// One number for each rotated pair.
std::vector<double> parse_factors(ConfigReader& object, std::string_view key) {
  const Json* value = object.find(key);
  CHECK(value != nullptr && value->is_array() && !value->empty(),
        "{}: {} is {}; must be a list of numbers, one for each rotated pair", object.where(), object.quoted(key),
        value == nullptr ? "missing" : brief(*value));
  std::vector<double> factors;
  for (const Json& factor : *value) {
    CHECK(factor.is_number() && factor > 0 && factor <= max_factor,
          "{}: {} holds {}; each must be a number above 0, at most {}", object.where(), object.quoted(key),
          brief(factor), max_factor);
    factors.push_back(factor.get<double>());
  }
  return factors;
}

void parse_longrope(ConfigReader& object, const Beside& beside, RopeConfig& rope) {
  rope.short_factors = parse_factors(object, "short_factor");
  rope.long_factors = parse_factors(object, "long_factor");
  const auto stated = optional_number(object, "factor", 1e-6, max_factor);
  const auto attention = optional_number(object, "attention_factor", 1e-6, max_factor);
  rope.original_max_positions = original_of_longrope(object, beside, stated || attention);
  const double original = static_cast<double>(rope.original_max_positions);
  const double ratio = static_cast<double>(beside.max_positions) / original;
  CHECK(attention || !beside.original || stated.value_or(ratio) == ratio,
        "{}: {} is {} and max_position_embeddings / {} is {}; version 5 of the Python reference computes with the "
        "first, version 4.57 with the second: give --ignore-config-key {} to compute with the second",
        object.where(), object.quoted("factor"), *stated, original_key, ratio, object.unquoted("factor"));
  const double factor = stated.value_or(ratio);
  const double derived = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(original));
  CHECK(std::isfinite(derived), "{}: {} is {}; longrope needs more than 1", object.where(),
        object.quoted("original_max_position_embeddings"), rope.original_max_positions);
  rope.attention_factor = attention.value_or(derived);
}

RopeObject parse_object(std::string name, ConfigReader object, const Beside& beside) {
  RopeObject result;
  result.name = std::move(name);
  result.rope.scaling = scaling_named(object, rope_type(object), beside);
  result.base = optional_number(object, "rope_theta", 1, max_base);
  result.rotated = optional_number(object, "partial_rotary_factor", 0, 1);
  switch (result.rope.scaling) {
    case RopeScaling::none:
      // Early files of models with longrope repeat the trained length here.
      object.find(original_key);
      break;
    case RopeScaling::linear:
      result.rope.factor = object.number("factor", 1, max_factor);
      break;
    case RopeScaling::proportional:
      result.rope.factor = optional_number(object, "factor", 1, max_factor).value_or(1);
      break;
    case RopeScaling::stretched_base:
      parse_stretched_base(object, result.rope);
      break;
    case RopeScaling::llama3:
      parse_llama3(object, beside, result.rope);
      break;
    case RopeScaling::yarn:
      parse_yarn(object, beside, result.rope);
      break;
    case RopeScaling::longrope:
      parse_longrope(object, beside, result.rope);
      break;
  }
  if (beside.keys.sections) {
    for (const char* key : {"mrope_section", "mrope_interleaved"}) object.find(key);
  }
  object.refuse_unread_values();
  return result;
}

/// The objects that were found: for layers without a window (or for all layers, if there is one kind), and for layers
/// with a window.
struct Spoken {
  std::vector<RopeObject> global;
  std::optional<RopeObject> window;
};

/// The reference reads `rope_scaling` alone if both objects are there: what only the other one says is lost.
void check_first_object(const ConfigReader& reader, const std::vector<RopeObject>& objects, bool has_base_beside) {
  if (objects.size() < 2) return;
  const RopeObject &first = objects.front(), &second = objects.back();
  const bool base_lost = second.base && !first.base && !has_base_beside,
             rotated_lost = second.rotated && !first.rotated;
  CHECK(!base_lost && !rotated_lost,
        "{}: '{}' has a {}, which the Python reference does not read beside '{}'; move it there, or remove '{}'",
        reader.where(), second.name, base_lost ? "rope_theta" : "partial_rotary_factor", first.name, first.name);
}

/// @param has_base_beside  there is a base outside of the objects, for objects that have none
Spoken spoken_objects(ConfigReader& reader, const Beside& beside, bool has_base_beside) {
  Spoken spoken;
  if (const auto scaling = reader.object("rope_scaling"))
    spoken.global.push_back(parse_object("rope_scaling", *scaling, beside));
  auto parameters = reader.object("rope_parameters");
  if (!parameters) return spoken;
  const auto full = parameters->object("full_attention"), sliding = parameters->object("sliding_attention");
  if (!full && !sliding) {
    spoken.global.push_back(parse_object("rope_parameters", *parameters, beside));
    check_first_object(reader, spoken.global, has_base_beside);
    return spoken;
  }
  parameters->refuse_unread_values();
  // Outside of these families the reference stops, or computes as without the objects.
  CHECK(beside.keys.by_window,
        "{}: 'rope_parameters' has an object for one kind of layer; this family reads one for all layers: write its "
        "keys into 'rope_parameters' itself",
        reader.where());
  if (full) spoken.global.push_back(parse_object("rope_parameters.full_attention", *full, beside));
  if (sliding) spoken.window = parse_object("rope_parameters.sliding_attention", *sliding, beside);
  const bool one_base = full && sliding && spoken.global.back().base.has_value() != spoken.window->base.has_value();
  CHECK(!one_base || has_base_beside,
        "{}: only one of 'rope_parameters.full_attention' and 'rope_parameters.sliding_attention' has a rope_theta; "
        "give it to both",
        reader.where());
  return spoken;
}

/// The value of a number that may stand in several places. All places must agree.
double agreed(const ConfigReader& reader, std::optional<double> beside, std::string_view key,
              const std::vector<RopeObject>& objects, std::optional<double> RopeObject::*member,
              std::string_view object_key, double fallback) {
  std::optional<double> value = beside;
  std::string from(key);
  for (const RopeObject& object : objects) {
    if (!(object.*member)) continue;
    CHECK(value.value_or(*(object.*member)) == *(object.*member), "{}: '{}' is {} and '{}.{}' is {}; they must agree",
          reader.where(), from, value.value_or(0), object.name, object_key, *(object.*member));
    value = object.*member;
    from = fmt::format("{}.{}", object.name, object_key);
  }
  return value.value_or(fallback);
}

/// The key of the rotated share outside of the objects. A family that rotates whole heads accepts only 1 there.
std::string_view rotated_key(const RopeKeys& keys) {
  return keys.rotated.empty() ? "partial_rotary_factor" : keys.rotated;
}

/// The rotary embedding of one kind of layer, from the objects that describe it.
RopeConfig merged(const ConfigReader& reader, const std::vector<RopeObject>& objects, const RopeKeys& keys,
                  std::string_view base_key, std::optional<double> base, double default_base,
                  std::optional<double> rotated) {
  RopeConfig rope = objects.empty() ? RopeConfig{} : objects.front().rope;
  for (const RopeObject& object : objects) {
    CHECK(object.rope == rope, "{}: '{}' and '{}' disagree; give one", reader.where(), objects.front().name,
          object.name);
  }
  rope.base = agreed(reader, base, base_key, objects, &RopeObject::base, "rope_theta", default_base);
  rope.rotated = agreed(reader, rotated, rotated_key(keys), objects, &RopeObject::rotated, "partial_rotary_factor",
                        keys.default_rotated);
  CHECK(rope.base > 1 || rope.scaling != RopeScaling::yarn, "{}: {} is {}; yarn needs more than 1", reader.where(),
        base_key, rope.base);
  return rope;
}

}  // namespace

Ropes parse_ropes(ConfigReader& reader, std::int64_t max_positions, const RopeKeys& keys) {
  auto original = original_in(reader);
  if (!original) original = keys.default_original;
  const auto base = optional_number(reader, keys.base, 1, max_base);
  const auto window_base =
      keys.window_base.empty() ? std::nullopt : optional_number(reader, keys.window_base, 1, max_base);
  const auto rotated = optional_number(reader, rotated_key(keys), 0, 1);
  const bool own_base = window_base || keys.default_window_base;
  const Spoken spoken = spoken_objects(reader, {reader, keys, max_positions, original}, base || own_base);

  Ropes ropes;
  ropes.rope = merged(reader, spoken.global, keys, keys.base, base, keys.default_base, rotated);
  CHECK(!keys.rotated.empty() || ropes.rope.rotated == 1,
        "{}: '{}' is {}; only whole heads are rotated in this family (1)", reader.where(), rotated_key(keys),
        ropes.rope.rotated);
  if (!spoken.window && !own_base) return ropes;
  std::vector<RopeObject> objects;
  if (spoken.window) objects.push_back(*spoken.window);
  // If layers with a window have no base key of their own, `rope_theta` outside of the objects holds for all layers.
  const RopeConfig window = own_base ? merged(reader, objects, keys, keys.window_base, window_base,
                                              keys.default_window_base.value_or(0), rotated)
                                     : merged(reader, objects, keys, keys.base, base, keys.default_base, rotated);
  if (window != ropes.rope) ropes.window = window;
  return ropes;
}

}  // namespace gainlens::models
