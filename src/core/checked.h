#pragma once

#include "core/error.h"

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace gainlens {

/// Integer arithmetic on numbers that come from a file. Gives the exact result, or throws InvalidArgument that names
/// `what`.
template <std::integral T>
T checked_add(T a, T b, std::string_view what) {
  T result;
  if (__builtin_add_overflow(a, b, &result)) throw_invalid("{}: {} + {} is too large", what, a, b);
  return result;
}

template <std::integral T>
T checked_mul(T a, T b, std::string_view what) {
  T result;
  if (__builtin_mul_overflow(a, b, &result)) throw_invalid("{}: {} x {} is too large", what, a, b);
  return result;
}

template <std::integral To, std::integral From>
To checked_cast(From value, std::string_view what) {
  if (!std::in_range<To>(value)) throw_invalid("{}: {} is out of range", what, value);
  return static_cast<To>(value);
}

/// Product of the sizes of a shape; 1 for a scalar.
/// @throws InvalidArgument  a negative size, or a product beyond int64
std::int64_t checked_elements(std::span<const std::int64_t> shape, std::string_view what);

}  // namespace gainlens
