#include "models/families/config_reader.h"

#include "core/check.h"
#include "core/nearest.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gainlens::models {

std::string brief(const Json& value) {
  return printable(value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace), 60);
}

ConfigReader::ConfigReader(const Json& object, std::string where, std::string prefix)
    : object_(&object), where_(std::move(where)), prefix_(std::move(prefix)) {
  CHECK(object.is_object(), "{}: {} is {}; must be a JSON object", where_,
        prefix_.empty() ? "the document" : "'" + prefix_.substr(0, prefix_.size() - 1) + "'", brief(object));
}

std::string ConfigReader::quoted(std::string_view key) const {
  return "'" + unquoted(key) + "'";
}

std::string ConfigReader::unquoted(std::string_view key) const {
  return prefix_ + printable(key, 100);
}

const Json* ConfigReader::find(std::string_view key) {
  read_.emplace(key);
  const auto found = object_->find(std::string(key));
  return found == object_->end() ? nullptr : &*found;
}

const Json* ConfigReader::find_non_null(std::string_view key) {
  const Json* value = find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::int64_t ConfigReader::integer(std::string_view key, std::int64_t low, std::int64_t high,
                                   std::optional<std::int64_t> fallback) {
  const Json* value = find(key);
  if (value == nullptr) {
    CHECK(fallback.has_value(), "{}: {} is missing; must be an integer from {} to {}", where_, quoted(key), low, high);
    return *fallback;
  }
  // A number above int64 is stored as unsigned. A larger one is stored as a double, which is_number_integer refuses.
  const bool fits = value->is_number_integer() &&
                    (!value->is_number_unsigned() ||
                     value->get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
  CHECK(fits && value->get<std::int64_t>() >= low && value->get<std::int64_t>() <= high,
        "{}: {} is {}; must be an integer from {} to {}", where_, quoted(key), brief(*value), low, high);
  return value->get<std::int64_t>();
}

double ConfigReader::number(std::string_view key, double low, double high, std::optional<double> fallback) {
  const Json* value = find(key);
  if (value == nullptr) {
    CHECK(fallback.has_value(), "{}: {} is missing; must be a number from {} to {}", where_, quoted(key), low, high);
    return *fallback;
  }
  CHECK(value->is_number() && value->get<double>() >= low && value->get<double>() <= high,
        "{}: {} is {}; must be a number from {} to {}", where_, quoted(key), brief(*value), low, high);
  return value->get<double>();
}

bool ConfigReader::boolean(std::string_view key, bool fallback) {
  const Json* value = find(key);
  if (value == nullptr || (value->is_null() && !fallback)) return fallback;
  CHECK(value->is_boolean(), "{}: {} is {}; must be true or false", where_, quoted(key), brief(*value));
  return value->get<bool>();
}

std::string ConfigReader::text(std::string_view key, std::optional<std::string> fallback) {
  const Json* value = find(key);
  if (value == nullptr) {
    CHECK(fallback.has_value(), "{}: {} is missing; must be a string", where_, quoted(key));
    return *fallback;
  }
  CHECK(value->is_string(), "{}: {} is {}; must be a string", where_, quoted(key), brief(*value));
  return value->get<std::string>();
}

std::optional<ConfigReader> ConfigReader::object(std::string_view key) {
  const Json* value = find_non_null(key);
  if (value == nullptr) return std::nullopt;
  return ConfigReader(*value, where_, prefix_ + std::string(key) + ".");
}

std::vector<std::string> ConfigReader::unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_->items()) {
    if (!read_.contains(key)) keys.push_back(key);
  }
  return keys;
}

bool ConfigReader::is_misspelt(std::string_view key) const {
  constexpr std::size_t letters = 2, shortest = 6;
  return key.size() >= shortest && std::ranges::any_of(read_, [key](const std::string& known) {
           const auto [shorter, longer] = std::minmax({key.size(), known.size()});
           return longer - shorter <= letters && edit_distance(key, known) <= letters;
         });
}

std::string ConfigReader::unknown(const std::string& key, std::span<const std::string_view> known) const {
  std::vector<std::string> names(read_.begin(), read_.end());
  names.insert(names.end(), known.begin(), known.end());
  return fmt::format("{}: unknown key {} (= {}) may change what the model computes{}", where_, quoted(key),
                     brief(object_->at(key)), did_you_mean(key.substr(0, 100), names));
}

void ConfigReader::refuse(const std::string& key, std::span<const std::string_view> known) const {
  throw_invalid("{}; if it does not, remove it or give --ignore-config-key {}", unknown(key, known), unquoted(key));
}

void ConfigReader::refuse_unread(std::span<const std::string_view> inert) const {
  for (const std::string& key : unread()) {
    const bool known = std::find(inert.begin(), inert.end(), key) != inert.end();
    CHECK(known, "{}; remove it only if it does not", unknown(key, inert));
  }
}

void ConfigReader::refuse_unread_values(std::span<const std::string_view> inert) const {
  for (const std::string& key : unread()) {
    const bool known = std::find(inert.begin(), inert.end(), key) != inert.end();
    if (!known && !object_->at(key).is_null()) refuse(key, inert);
  }
}

}  // namespace gainlens::models
