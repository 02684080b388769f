#include "core/check.h"
#include "core/nearest.h"
#include "core/utf8.h"
#include "formats/byte_cursor.h"
#include "formats/gguf_file.h"
#include "formats/mapped_file.h"

#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

namespace gainlens::formats {
namespace {

constexpr std::array kind_names{"u8",      "i8",   "u16",   "i16", "u32", "i32", "f32",
                                "boolean", "text", "array", "u64", "i64", "f64"};

std::string name_of(GgufKind kind) {
  return kind_names.at(static_cast<std::size_t>(kind));
}

/// Calls `f` with a zero of the C++ type that has the same bytes as the number in the file. Returns false if the kind
/// is not a number.
template <typename Function>
bool visit_number(GgufKind kind, Function&& f) {
  switch (kind) {
    case GgufKind::u8:
      return f(std::uint8_t{}), true;
    case GgufKind::i8:
      return f(std::int8_t{}), true;
    case GgufKind::u16:
      return f(std::uint16_t{}), true;
    case GgufKind::i16:
      return f(std::int16_t{}), true;
    case GgufKind::u32:
      return f(std::uint32_t{}), true;
    case GgufKind::i32:
      return f(std::int32_t{}), true;
    case GgufKind::u64:
      return f(std::uint64_t{}), true;
    case GgufKind::i64:
      return f(std::int64_t{}), true;
    case GgufKind::f32:
      return f(float{}), true;
    case GgufKind::f64:
      return f(double{}), true;
    default:
      return false;
  }
}

/// The values of a number or of an array of numbers as int64.
/// @throws InvalidArgument  `kind` is not an integer kind; a value beyond int64
std::vector<std::int64_t> as_integers(GgufKind kind, const GgufValue& value, const std::string& where) {
  std::vector<std::int64_t> result;
  bool read = false;
  visit_number(kind, [&]<typename Number>(Number) {
    if constexpr (std::is_integral_v<Number>) {
      read = true;
      result.reserve(value.count);
      for (std::uint64_t i = 0; i < value.count; ++i) {
        const auto number = number_at<Number>(value.bytes.subspan(i * sizeof(Number)));
        CHECK(std::in_range<std::int64_t>(number), "{}: holds {}; must be at most 2^63 - 1", where, number);
        result.push_back(static_cast<std::int64_t>(number));
      }
    }
  });
  CHECK(read, "{}: holds {}; must be integers", where, name_of(kind));
  return result;
}

/// The values of a number or of an array of numbers as double, all exact.
/// @throws InvalidArgument  `kind` is not a number; a value that is not finite, or an integer beyond 2^53
std::vector<double> as_numbers(GgufKind kind, const GgufValue& value, const std::string& where) {
  std::vector<double> result;
  result.reserve(value.count);
  const bool read = visit_number(kind, [&]<typename Number>(Number) {
    for (std::uint64_t i = 0; i < value.count; ++i) {
      const auto stored = number_at<Number>(value.bytes.subspan(i * sizeof(Number)));
      const auto number = static_cast<double>(stored);
      CHECK(std::isfinite(number), "{}: holds {}; must be finite", where, stored);
      CHECK(!std::is_integral_v<Number> || std::abs(number) <= 0x1p53, "{}: holds {}; must be at most 2^53", where,
            stored);
      result.push_back(number);
    }
  });
  CHECK(read, "{}: holds {}; must be numbers", where, name_of(kind));
  return result;
}

}  // namespace

GgufMetadata::GgufMetadata(std::shared_ptr<const MappedFile> file, Values values)
    : file_(std::move(file)), where_(printable(file_->path().string())), values_(std::move(values)) {}

bool GgufMetadata::has(std::string_view key) const {
  return values_.contains(key);
}

std::vector<std::string> GgufMetadata::keys() const {
  std::vector<std::string> all;
  for (const auto& [key, value] : values_) all.push_back(key);
  return all;
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

std::string GgufMetadata::place(std::string_view key) const {
  const GgufValue* value = find(key);
  ASSERT(value != nullptr, "no key '{}' to tell the place of", key);
  return fmt::format("{}: byte {}: key '{}'", where_, value->bytes.data() - file_->bytes().data(), printable(key));
}

const GgufValue& GgufMetadata::required(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr)
    throw_invalid("{}: no key '{}' in its metadata{}", where_, printable(key),
                  printable(did_you_mean(key, keys()), 300));
  return *value;
}

const GgufValue* GgufMetadata::find_array(std::string_view key) const {
  const GgufValue* value = find(key);
  CHECK(value == nullptr || value->kind == GgufKind::array, "{}: is one {}; must be an array", place(key),
        name_of(value->kind));
  return value;
}

std::int64_t GgufMetadata::integer(std::string_view key, std::int64_t low, std::int64_t high,
                                   std::optional<std::int64_t> fallback) const {
  if (fallback.has_value() && !has(key)) return *fallback;
  const GgufValue& value = required(key);
  CHECK(value.kind != GgufKind::array, "{}: is an array; must be one integer", place(key));
  const std::int64_t number = as_integers(value.kind, value, place(key)).front();
  CHECK(low <= number && number <= high, "{}: {}; must be between {} and {}", place(key), number, low, high);
  return number;
}

double GgufMetadata::number(std::string_view key, std::optional<double> fallback) const {
  if (fallback.has_value() && !has(key)) return *fallback;
  const GgufValue& value = required(key);
  CHECK(value.kind != GgufKind::array, "{}: is an array; must be one number", place(key));
  return as_numbers(value.kind, value, place(key)).front();
}

bool GgufMetadata::boolean(std::string_view key, std::optional<bool> fallback) const {
  if (fallback.has_value() && !has(key)) return *fallback;
  const GgufValue& value = required(key);
  CHECK(value.kind == GgufKind::boolean, "{}: is {}; must be a boolean", place(key), name_of(value.kind));
  return value.bytes.front() != std::byte{0};
}

std::string GgufMetadata::text(std::string_view key, std::optional<std::string> fallback) const {
  if (fallback.has_value() && !has(key)) return *fallback;
  const GgufValue& value = required(key);
  CHECK(value.kind == GgufKind::text, "{}: is {}; must be a text", place(key), name_of(value.kind));
  std::string text(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
  CHECK(!first_invalid_utf8(text).has_value(), "{}: '{}' is not UTF-8", place(key), printable(text));
  return text;
}

std::optional<std::vector<std::string_view>> GgufMetadata::texts(std::string_view key) const {
  const GgufValue* value = find_array(key);
  if (value == nullptr) return std::nullopt;
  CHECK(value->element == GgufKind::text, "{}: holds {}; must be texts", place(key), name_of(value->element));
  std::vector<std::string_view> result;
  result.reserve(value->count);
  auto rest = value->bytes;
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const auto length = static_cast<std::size_t>(number_at<std::uint64_t>(rest));
    rest = rest.subspan(sizeof(std::uint64_t));
    result.emplace_back(reinterpret_cast<const char*>(rest.data()), length);
    rest = rest.subspan(length);
  }
  return result;
}

std::optional<std::vector<std::int64_t>> GgufMetadata::integers(std::string_view key) const {
  const GgufValue* value = find_array(key);
  if (value == nullptr) return std::nullopt;
  return as_integers(value->element, *value, place(key));
}

std::optional<std::vector<double>> GgufMetadata::numbers(std::string_view key) const {
  const GgufValue* value = find_array(key);
  if (value == nullptr) return std::nullopt;
  return as_numbers(value->element, *value, place(key));
}

std::optional<std::vector<bool>> GgufMetadata::booleans(std::string_view key) const {
  const GgufValue* value = find_array(key);
  if (value == nullptr) return std::nullopt;
  CHECK(value->element == GgufKind::boolean, "{}: holds {}; must be booleans", place(key), name_of(value->element));
  std::vector<bool> result;
  for (const std::byte byte : value->bytes) result.push_back(byte != std::byte{0});
  return result;
}

}  // namespace gainlens::formats
