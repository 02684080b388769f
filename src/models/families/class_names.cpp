#include "models/families/class_names.h"

#include "core/check.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace gainlens::models {
namespace {

std::vector<std::string> model_classes(const Family& family) {
  std::vector<std::string> names;
  for (const std::string_view base : family.classes) {
    names.push_back(fmt::format("{}{}", base, family.class_suffix));
    names.push_back(fmt::format("{}Model", base));
  }
  return names;
}

/// The class without its wrapper: weights that were spread over devices when they were saved name the class
/// "FSDPLlamaForCausalLM", for example.
std::string_view without_wrapper(std::string_view name) {
  constexpr std::string_view wrapper = "FSDP";
  return name.starts_with(wrapper) ? name.substr(wrapper.size()) : name;
}

bool is_model_class(const Family& family, std::string_view name) {
  const auto names = model_classes(family);
  return std::find(names.begin(), names.end(), without_wrapper(name)) != names.end();
}

bool is_config_class(const Family& family, std::string_view name) {
  return std::ranges::any_of(family.classes, [name](std::string_view base) {
    return name == fmt::format("{}Config", base) || name == fmt::format("{}TextConfig", base);
  });
}

/// The class of "repository--module.Class".
std::string_view class_of(std::string_view code) {
  const auto dot = code.rfind('.');
  return dot == std::string_view::npos ? code : code.substr(dot + 1);
}

std::vector<std::string> read_architectures(ConfigReader& reader) {
  const Json* value = reader.find_non_null("architectures");
  if (value == nullptr) return {};
  std::vector<std::string> names;
  CHECK(value->is_array(), "{}: 'architectures' is {}; must be a list of names of classes", reader.where(),
        brief(*value));
  for (const Json& name : *value) {
    CHECK(name.is_string(), "{}: 'architectures' holds {}; each must be the name of a class", reader.where(),
          brief(name));
    names.push_back(name.get<std::string>());
  }
  return names;
}

// Other entries of auto_map are for tokenizers, and for other tasks with the same weights.
constexpr std::string_view code_entries[] = {"AutoConfig", "AutoModel", "AutoModelForCausalLM"};

void check_auto_map(ConfigReader& reader, const Family& family) {
  const Json* map = reader.find_non_null("auto_map");
  if (map == nullptr) return;
  CHECK(map->is_object(), "{}: 'auto_map' is {}; must be an object", reader.where(), brief(*map));
  for (const std::string_view entry : code_entries) {
    const auto found = map->find(entry);
    if (found == map->end() || found->is_null()) continue;
    CHECK(found->is_string(), "{}: 'auto_map.{}' is {}; must be the name of a class", reader.where(), entry,
          brief(*found));
    const std::string code = found->get<std::string>();
    const std::string_view name = class_of(code);
    CHECK(is_model_class(family, name) || is_config_class(family, name),
          "{}: 'auto_map.{}' is {}: code of its own, which may compute something else than model_type {}; allowed are "
          "the classes {}",
          reader.where(), entry, brief(*found), family.name, fmt::join(model_classes(family), ", "));
  }
}

}  // namespace

bool has_own_code(const ConfigReader& reader) {
  const auto map = reader.json().find("auto_map");
  return map != reader.json().end() && map->is_object() &&
         std::ranges::any_of(code_entries, [&](std::string_view entry) {
           return map->contains(entry) && !map->at(std::string(entry)).is_null();
         });
}

const Family& family_of_config(ConfigReader& reader) {
  if (reader.find_non_null("model_type") != nullptr) return family_named(reader.text("model_type"), reader.where());
  const auto architectures = read_architectures(reader);
  CHECK(!architectures.empty(),
        "{}: 'model_type' is missing, and there are no 'architectures'; one of them must name "
        "the family",
        reader.where());
  for (const Family& family : families()) {
    if (is_model_class(family, architectures.front())) return family;
  }
  std::vector<std::string> known;
  for (const Family& family : families()) known.push_back(model_classes(family).front());
  throw_invalid("{}: 'model_type' is missing, and 'architectures' names {}, which is not supported; supported are {}",
                reader.where(), printable(architectures.front(), 60), fmt::join(known, ", "));
}

void check_class_names(ConfigReader& reader, const Family& family) {
  for (const std::string& name : read_architectures(reader)) {
    CHECK(is_model_class(family, name),
          "{}: 'architectures' names {}, which may compute something else than model_type {}; allowed are {}",
          reader.where(), printable(name, 60), family.name, fmt::join(model_classes(family), ", "));
  }
  check_auto_map(reader, family);
}

}  // namespace gainlens::models
