#pragma once

#include "core/json.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::tokenizers {

/// A value of a tokenizer file, with its place in the file for messages.
class JsonNode {
 public:
  JsonNode(const Json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  const Json& json() const { return *value_; }
  /// "folder/tokenizer.json: normalizer.pattern"
  const std::string& where() const { return where_; }
  bool is_null() const { return value_->is_null(); }
  bool is_object() const { return value_->is_object(); }

  /// Whether the key is there and not null.
  bool has(std::string_view key) const;
  /// The child of that name; a null node where it is absent.
  JsonNode at(std::string_view key) const;
  std::vector<JsonNode> items() const;

  /// Typed reading. @throws InvalidArgument  another type
  std::string text() const;
  bool boolean() const;
  bool boolean_or(bool fallback) const { return is_null() ? fallback : boolean(); }
  std::int64_t integer() const;
  /// Exactly one character. @throws InvalidArgument  not a text of one code point
  std::string character() const;

  /// @throws InvalidArgument  not an object, or a key other than these: an unknown key may change the tokens
  void allow_only(std::initializer_list<std::string_view> keys) const;
  /// @throws InvalidArgument  always
  [[noreturn]] void unsupported(std::string_view what) const;

 private:
  void expect(bool fits, std::string_view wanted) const;

  const Json* value_;
  std::string where_;
};

}  // namespace gainlens::tokenizers
