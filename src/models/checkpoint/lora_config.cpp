#include "models/checkpoint/lora_config.h"

#include "core/check.h"
#include "core/json.h"
#include "models/families/config_reader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

namespace gainlens::models {
namespace {

constexpr std::uintmax_t max_lora_config_bytes = 16u << 20;
constexpr std::int64_t max_rank = std::int64_t{1} << 20;
constexpr std::int64_t max_layer = std::int64_t{1} << 20;
constexpr std::size_t max_patterns = 4096;

/// Keys that cannot change a number once an adapter is trained.
constexpr std::array inert_lora_keys = {
    "base_model_name_or_path", "revision",          "task_type",    "auto_mapping",
    "inference_mode",          "peft_version",      "lora_dropout",
    "fan_in_fan_out",  // the layout of the base is known
    "megatron_core",           "qalora_group_size", "eva_config",   "runtime_config",
    "ensure_weight_tying"};

bool is_unset(const Json& value) {
  return value.is_null() || value == Json(false) || ((value.is_array() || value.is_object()) && value.empty());
}

void check_method(ConfigReader& reader) {
  const std::string& where = reader.where();
  const std::string type = reader.text("peft_type");
  CHECK(type == "LORA", "{}: 'peft_type' is {}; of adapters, only LORA is read", where, printable(type, 60));
  CHECK(reader.text("bias", "none") == "none",
        "{}: 'bias' is not none: biases of the base were trained too, which is not read; merge the adapter in PEFT",
        where);
  const auto refuse_set = [&](const char* key, const char* why) {
    const Json* value = reader.find(key);
    CHECK(value == nullptr || is_unset(*value), "{}: '{}' is {}: {}; merge the adapter in PEFT", where, key,
          brief(*value), why);
  };
  refuse_set("use_dora", "DoRA is not read");
  refuse_set("modules_to_save", "whole modules were trained too, which is not read");
  refuse_set("lora_bias", "factors with biases are not read");
  refuse_set("target_parameters", "factors of single parameters are not read");
  refuse_set("trainable_token_indices", "rows of the embedding were trained too, which is not read");
  if (const Json* start = reader.find("init_lora_weights")) {
    const bool plain =
        start->is_boolean() || start->is_null() || *start == "gaussian" || *start == "orthogonal" || *start == "eva";
    CHECK(plain, "{}: 'init_lora_weights' is {}: a start that changes the base is not read; merge the adapter in PEFT",
          where, brief(*start));
  }
  const Json* loftq = reader.find("loftq_config");
  CHECK(loftq == nullptr || is_unset(*loftq), "{}: 'loftq_config' is set: its base has other weights; not read", where);
}

std::string where_of(const ConfigReader& reader, std::string_view key) {
  return fmt::format("{}: {}", reader.where(), reader.quoted(key));
}

/// A list of names, or a text that is a regular expression. Empty: the key is absent, null or an empty list.
ModuleChoice read_choice(ConfigReader& reader, std::string_view key) {
  ModuleChoice choice;
  const Json* found = reader.find_non_null(key);
  if (found == nullptr) return choice;
  if (found->is_string()) {
    const auto& text = found->get_ref<const std::string&>();
    if (!text.empty()) choice.set_pattern(ModulePattern(text, where_of(reader, key)));
    return choice;
  }
  const bool names =
      found->is_array() && std::ranges::all_of(*found, [](const Json& name) { return name.is_string(); });
  CHECK(names, "{} is {}; must be a list of names of modules, or a text with a regular expression for them",
        where_of(reader, key), brief(*found));
  for (const Json& name : *found) choice.add_name(name.get<std::string>());
  return choice;
}

bool is_all_linear(const Json& value) {
  if (!value.is_string()) return false;
  std::string text = value.get<std::string>();
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return text == "all-linear";
}

/// layers_to_transform: a layer, or a list of layers.
std::set<std::int64_t> read_layers(ConfigReader& reader) {
  const Json* found = reader.find_non_null("layers_to_transform");
  std::set<std::int64_t> layers;
  if (found == nullptr) return layers;
  const Json list = found->is_array() ? *found : Json::array({*found});
  for (const Json& layer : list) {
    CHECK(layer.is_number_integer() && layer >= 0 && layer <= max_layer,
          "{} is {}; must be a layer or a list of layers", where_of(reader, "layers_to_transform"), brief(*found));
    layers.insert(layer.get<std::int64_t>());
  }
  return layers;
}

/// layers_pattern: what the number of a layer follows in the name of a module. Without it any word.
std::vector<ModulePattern> read_layer_patterns(ConfigReader& reader) {
  const Json* found = reader.find_non_null("layers_pattern");
  const std::string where = where_of(reader, "layers_pattern");
  std::vector<ModulePattern> patterns;
  const bool none = found == nullptr || found->empty() || *found == "";
  if (none) patterns.emplace_back(R"(.*?\.[^.]*\.(?P<idx>\d+)\.)", where);
  const Json list = none ? Json::array() : found->is_array() ? *found : Json::array({*found});
  for (const Json& pattern : list) {
    CHECK(pattern.is_string() && patterns.size() < max_patterns, "{} is {}; must be a text or a list of texts", where,
          brief(*found));
    patterns.emplace_back(fmt::format(R"((?:^|.*?\.){}\.(?P<idx>\d+)\.)", pattern.get<std::string>()), where);
  }
  return patterns;
}

/// rank_pattern or alpha_pattern. PEFT matches each key with the end of a module's name after a dot.
ModuleNumbers read_numbers(ConfigReader& reader, std::string_view name, double common) {
  ModuleNumbers found{.where = where_of(reader, name), .common = common, .by_module = {}};
  const std::optional<ConfigReader> object = reader.object(name);
  if (!object) return found;
  for (const auto& [key, value] : object->json().items()) {
    CHECK(value.is_number() && std::isfinite(value.get<double>()), "{} of '{}' is {}; must be a number", found.where,
          printable(key, 100), brief(value));
    CHECK(found.by_module.size() < max_patterns, "{} has more than {} keys", found.where, max_patterns);
    found.by_module.emplace_back(ModulePattern(fmt::format(R"((.*\.)?({})$)", key), found.where), value.get<double>());
  }
  return found;
}

}  // namespace

bool ModuleChoice::has(std::string_view module) const {
  if (is_pattern()) return patterns_.front().matches(module);
  if (names_.contains(module)) return true;
  for (std::size_t dot = module.find('.'); dot != std::string_view::npos; dot = module.find('.', dot + 1)) {
    if (names_.contains(module.substr(dot + 1))) return true;
  }
  return false;
}

double ModuleNumbers::of(std::string_view module) const {
  std::optional<double> found;
  for (const auto& [pattern, value] : by_module) {
    if (!pattern.matches(module)) continue;
    CHECK(!found || *found == value, "{} gives '{}' both {} and {}", where, printable(module, 100), *found, value);
    found = value;
  }
  return found.value_or(common);
}

bool LoraConfig::takes(std::string_view module, ModuleKind kind) const {
  if (excluded.has(module)) return false;
  if (all_linear) return kind == ModuleKind::projection;
  if (targets.names_whole(module)) return true;
  if (!targets.has(module)) return false;
  if (layers.empty()) return true;
  for (const ModulePattern& pattern : layer_patterns) {
    const std::string digits = pattern.index_in(module);
    if (digits.empty()) continue;
    std::int64_t layer = -1;
    std::from_chars(digits.data(), digits.data() + digits.size(), layer);
    return layers.contains(layer);
  }
  return false;
}

double LoraConfig::scale_of(std::string_view module, std::int64_t rows) const {
  const auto own = static_cast<double>(rows);
  return alphas.of(module) / (stabilised ? std::sqrt(own) : own);
}

LoraConfig read_lora_config(const std::filesystem::path& file) {
  const Json document = read_json_file(file, max_lora_config_bytes);
  ConfigReader reader(document, printable(file.string()));
  check_method(reader);
  for (const char* key : inert_lora_keys) reader.find(key);
  LoraConfig config{
      .ranks = read_numbers(reader, "rank_pattern", static_cast<double>(reader.integer("r", 1, max_rank))),
      .alphas = read_numbers(reader, "alpha_pattern", reader.number("lora_alpha", -1e12, 1e12)),
      .stabilised = reader.boolean("use_rslora", false)};
  const Json* targets = reader.find("target_modules");
  config.all_linear = targets != nullptr && is_all_linear(*targets);
  if (!config.all_linear) config.targets = read_choice(reader, "target_modules");
  CHECK(config.all_linear || !config.targets.empty(),
        "{} is missing or empty; must be a list of names of modules, or a text with a regular expression for them",
        where_of(reader, "target_modules"));
  config.excluded = read_choice(reader, "exclude_modules");
  config.layers = read_layers(reader);
  CHECK(config.layers.empty() || (!config.all_linear && !config.targets.is_pattern()),
        "{}: 'layers_to_transform' is set and 'target_modules' is a text; PEFT takes it beside names alone",
        reader.where());
  config.layer_patterns = read_layer_patterns(reader);
  for (const std::string& key : reader.unread()) {
    const Json& value = document.at(key);
    CHECK(is_unset(value), "{}: '{}' is {}; this key is not known, and may change what the adapter computes",
          reader.where(), printable(key, 60), brief(value));
  }
  return config;
}

}  // namespace gainlens::models
