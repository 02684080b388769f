#include "core/short_text.h"

#include <fmt/format.h>

namespace gainlens {

std::string short_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
}

}  // namespace gainlens
