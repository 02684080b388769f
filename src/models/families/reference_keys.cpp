#include "models/families/reference_keys.h"

#include <map>
#include <optional>

namespace gainlens::models {
namespace {

using Keys = std::map<std::string_view, std::string_view>;

Keys parse_keys(std::string_view text) {
  constexpr std::string_view space = " \n";
  Keys keys;
  for (auto at = text.find_first_not_of(space); at != std::string_view::npos; at = text.find_first_not_of(space, at)) {
    const std::string_view word = text.substr(at, text.find_first_of(space, at) - at);
    const auto equals = word.find('=');
    keys.emplace(word.substr(0, equals), equals == std::string_view::npos ? "" : word.substr(equals + 1));
    at += word.size();
  }
  return keys;
}

std::optional<ReferenceKey> key_in(const Keys& keys, std::string_view key) {
  const auto found = keys.find(key);
  return found == keys.end() ? std::nullopt : std::optional(ReferenceKey{true, found->second});
}

}  // namespace

ReferenceKey reference_key(std::string_view model_type, std::string_view key) {
  static const Keys shared = parse_keys(reference::shared_keys);
  static const auto families = [] {
    std::map<std::string_view, Keys> all;
    for (const auto& family : reference::family_keys()) all.emplace(family.model_type, parse_keys(family.keys));
    return all;
  }();
  const auto own = families.find(model_type);
  if (own == families.end()) return {.read = true, .usual_value = {}};  // nothing is known of it
  if (const auto found = key_in(own->second, key)) return *found;
  return key_in(shared, key).value_or(ReferenceKey{});
}

}  // namespace gainlens::models
