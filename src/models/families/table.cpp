#include "core/error.h"
#include "core/nearest.h"
#include "models/family.h"

#include <fmt/ranges.h>

namespace gainlens::models {

Family llama();
Family mistral();
Family qwen2();
Family qwen3();

std::span<const Family> families() {
  static const std::vector<Family> table = {llama(), mistral(), qwen2(), qwen3()};
  return table;
}

const Family& family_named(std::string_view model_type, std::string_view where) {
  std::vector<std::string> names;
  for (const Family& family : families()) {
    if (family.name == model_type) return family;
    names.emplace_back(family.name);
  }
  throw_invalid("{}: model_type '{}' is not supported; supported are {}{}", where, printable(model_type, 60), fmt::join(names, ", "),
                did_you_mean(model_type.substr(0, 60), names));
}

}  // namespace gainlens::models
