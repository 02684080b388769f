#include "runfile/noise_level.h"

#include "core/plain_text.h"

#include <fmt/format.h>

namespace gainlens::runfile {
namespace {

constexpr std::string_view prefix = "np";

}  // namespace

std::string noise_variant(double percent) {
  return fmt::format("{}{}", prefix, percent);
}

std::optional<double> noise_of_variant(std::string_view variant) {
  return variant.starts_with(prefix) ? finite_number(variant.substr(prefix.size())) : std::nullopt;
}

}  // namespace gainlens::runfile
