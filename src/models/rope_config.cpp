#include "models/rope_config.h"

#include "core/error.h"
#include "core/nearest.h"

#include <array>
#include <cmath>
#include <map>

namespace gainlens::models {
namespace {

constexpr double max_base = 1e12;
constexpr double max_factor = 1e6;
constexpr std::int64_t max_original = std::int64_t{1} << 31;

/// What one object says; the base is apart, since it may stand beside the object.
struct RopeObject {
  RopeConfig rope;
  std::optional<double> base;
};

std::string rope_type(ConfigReader& object) {
  const bool has_both = object.find("rope_type") != nullptr && object.find("type") != nullptr;
  const std::string type = object.text("rope_type", object.text("type", "default"));
  CHECK(!has_both || object.text("type") == type, "{}: {} is '{}' and {} is '{}'; they must agree", object.where(),
        object.quoted("rope_type"), printable(type), object.quoted("type"), printable(object.text("type")));
  return type;
}

RopeScaling scaling_named(const ConfigReader& object, const std::string& type) {
  static const std::map<std::string, RopeScaling, std::less<>> known = {
      {"default", RopeScaling::none}, {"linear", RopeScaling::linear}, {"llama3", RopeScaling::llama3}, {"yarn", RopeScaling::yarn}};
  if (const auto found = known.find(type); found != known.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, scaling] : known) names.push_back(name);
  throw_invalid("{}: {} is '{}', which is not supported; default, linear, llama3 or yarn{}", object.where(), object.quoted("rope_type"),
                printable(type), did_you_mean(type.substr(0, 100), names));
}

/// A number that may be absent or null.
std::optional<double> optional_number(ConfigReader& object, std::string_view key, double low, double high) {
  if (object.find_non_null(key) == nullptr) return std::nullopt;
  return object.number(key, low, high);
}

std::int64_t original_positions(ConfigReader& object, std::int64_t max_positions) {
  return object.integer("original_max_position_embeddings", 1, max_original, max_positions);
}

void parse_llama3(ConfigReader& object, std::int64_t max_positions, RopeConfig& rope) {
  rope.factor = object.number("factor", 1, max_factor);
  rope.low_frequency_factor = object.number("low_freq_factor", 1e-6, max_factor);
  rope.high_frequency_factor = object.number("high_freq_factor", 1e-6, max_factor);
  rope.original_max_positions = original_positions(object, max_positions);
  CHECK(rope.high_frequency_factor > rope.low_frequency_factor, "{}: {} is {} and {} is {}; the former must be greater", object.where(),
        object.quoted("high_freq_factor"), rope.high_frequency_factor, object.quoted("low_freq_factor"), rope.low_frequency_factor);
}

/// m(s, a) of the header; 1 where nothing is stretched.
double magnitude(double factor, double scale) {
  return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

void parse_yarn(ConfigReader& object, std::int64_t max_positions, RopeConfig& rope) {
  rope.original_max_positions = original_positions(object, max_positions);
  const double ratio = static_cast<double>(max_positions) / static_cast<double>(rope.original_max_positions);
  rope.factor = optional_number(object, "factor", 1, max_factor).value_or(ratio);
  CHECK(rope.factor >= 1,
        "{}: {} is absent and max_position_embeddings / original_max_position_embeddings is {}; the factor must be at least 1",
        object.where(), object.quoted("factor"), rope.factor);
  rope.beta_fast = optional_number(object, "beta_fast", 1e-6, max_factor).value_or(32);
  rope.beta_slow = optional_number(object, "beta_slow", 1e-6, max_factor).value_or(1);
  CHECK(rope.beta_fast >= rope.beta_slow, "{}: {} is {} and {} is {}; the former must not be smaller", object.where(),
        object.quoted("beta_fast"), rope.beta_fast, object.quoted("beta_slow"), rope.beta_slow);
  rope.truncate = object.boolean("truncate", true);
  object.find("finetuned");  // a remark of early yarn checkpoints

  const double mscale = optional_number(object, "mscale", 0, max_factor).value_or(0);
  const double mscale_all_dim = optional_number(object, "mscale_all_dim", 0, max_factor).value_or(0);
  const double derived = mscale != 0 && mscale_all_dim != 0 ? magnitude(rope.factor, mscale) / magnitude(rope.factor, mscale_all_dim)
                                                            : magnitude(rope.factor, 1);
  rope.attention_factor = optional_number(object, "attention_factor", 1e-6, max_factor).value_or(derived);
}

RopeObject parse_object(ConfigReader object, std::int64_t max_positions) {
  RopeObject result;
  result.rope.scaling = scaling_named(object, rope_type(object));
  result.base = optional_number(object, "rope_theta", 1, max_base);
  const auto rotated = optional_number(object, "partial_rotary_factor", 0, 1);
  CHECK(rotated.value_or(1) == 1, "{}: {} is {}; only whole heads are rotated (1)", object.where(), object.quoted("partial_rotary_factor"),
        *rotated);
  switch (result.rope.scaling) {
    case RopeScaling::none:
      break;
    case RopeScaling::linear:
      result.rope.factor = object.number("factor", 1, max_factor);
      break;
    case RopeScaling::llama3:
      parse_llama3(object, max_positions, result.rope);
      break;
    case RopeScaling::yarn:
      parse_yarn(object, max_positions, result.rope);
      break;
  }
  object.refuse_unread();
  return result;
}

bool same_scaling(const RopeConfig& a, const RopeConfig& b) {
  return a.scaling == b.scaling && a.factor == b.factor && a.low_frequency_factor == b.low_frequency_factor &&
         a.high_frequency_factor == b.high_frequency_factor && a.original_max_positions == b.original_max_positions &&
         a.beta_fast == b.beta_fast && a.beta_slow == b.beta_slow && a.attention_factor == b.attention_factor && a.truncate == b.truncate;
}

/// The objects that speak, each with the name messages give it: rope_scaling, rope_parameters, or one per layer type of the latter.
std::vector<std::pair<std::string, RopeObject>> spoken_objects(ConfigReader& reader, std::int64_t max_positions) {
  std::vector<std::pair<std::string, RopeObject>> spoken;
  if (const auto scaling = reader.object("rope_scaling")) spoken.emplace_back("rope_scaling", parse_object(*scaling, max_positions));
  auto parameters = reader.object("rope_parameters");
  if (!parameters) return spoken;
  bool nested = false;
  for (const std::string layer_type : {"full_attention", "sliding_attention"}) {
    const auto object = parameters->object(layer_type);
    if (!object) continue;
    nested = true;
    spoken.emplace_back("rope_parameters." + layer_type, parse_object(*object, max_positions));
  }
  if (nested) {
    parameters->refuse_unread();
    const bool same_bases = spoken.front().second.base.has_value() == spoken.back().second.base.has_value();
    CHECK(same_bases || reader.find_non_null("rope_theta") != nullptr, "{}: only one of '{}' and '{}' has a rope_theta; give it to both",
          reader.where(), spoken.front().first, spoken.back().first);
  } else {
    spoken.emplace_back("rope_parameters", parse_object(*parameters, max_positions));
  }
  return spoken;
}

}  // namespace

RopeConfig parse_rope(ConfigReader& reader, std::int64_t max_positions) {
  const auto spoken = spoken_objects(reader, max_positions);
  RopeConfig rope = spoken.empty() ? RopeConfig{} : spoken.front().second.rope;
  for (const auto& [name, object] : spoken) {
    CHECK(same_scaling(object.rope, rope), "{}: '{}' and '{}' disagree; one rotary embedding for all layers is supported", reader.where(),
          spoken.front().first, name);
  }

  std::optional<double> base = optional_number(reader, "rope_theta", 1, max_base);
  std::string base_from = "rope_theta";
  for (const auto& [name, object] : spoken) {
    if (!object.base) continue;
    CHECK(base.value_or(*object.base) == *object.base, "{}: '{}' is {} and '{}.rope_theta' is {}; they must agree", reader.where(),
          base_from, base.value_or(0), name, *object.base);
    base = object.base;
    base_from = name + ".rope_theta";
  }
  rope.base = base.value_or(RopeConfig{}.base);
  CHECK(rope.base > 1 || rope.scaling != RopeScaling::yarn, "{}: rope_theta is {}; yarn needs more than 1", reader.where(), rope.base);
  return rope;
}

}  // namespace gainlens::models
