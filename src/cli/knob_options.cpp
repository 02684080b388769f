#include "cli/knob_options.h"

#include <algorithm>

namespace gainlens::cli {

std::string knob_option(const std::string& key) {
  std::string name = "--" + key;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

Json knob_value(const std::string& text) {
  const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return parsed.is_number() || parsed.is_boolean() ? parsed : Json(text);
}

}  // namespace gainlens::cli
