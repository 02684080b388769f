#include "tokenizers/json_node.h"

#include "core/check.h"
#include "tokenizers/code_points.h"

#include <algorithm>

namespace gainlens::tokenizers {

bool JsonNode::has(std::string_view key) const {
  return !at(key).is_null();
}

JsonNode JsonNode::at(std::string_view key) const {
  static const Json absent;
  expect(value_->is_object(), "an object");
  const auto found = value_->find(std::string(key));
  return {found == value_->end() ? absent : *found,
          fmt::format("{}{}{}", where_, where_.ends_with(':') ? " " : ".", key)};
}

std::vector<JsonNode> JsonNode::items() const {
  expect(value_->is_array(), "an array");
  std::vector<JsonNode> nodes;
  for (const Json& item : *value_) nodes.emplace_back(item, fmt::format("{}[{}]", where_, nodes.size()));
  return nodes;
}

std::string JsonNode::text() const {
  expect(value_->is_string(), "a text");
  return value_->get<std::string>();
}

bool JsonNode::boolean() const {
  expect(value_->is_boolean(), "true or false");
  return value_->get<bool>();
}

std::int64_t JsonNode::integer() const {
  expect(value_->is_number_integer() &&
             !(value_->is_number_unsigned() && value_->get<std::uint64_t>() > std::uint64_t{INT64_MAX}),
         "an integer");
  return value_->get<std::int64_t>();
}

std::string JsonNode::character() const {
  std::string content = text();
  std::size_t position = 0;
  if (!content.empty()) next_code_point(content, position);
  expect(!content.empty() && position == content.size(), "one character");
  return content;
}

void JsonNode::allow_only(std::initializer_list<std::string_view> keys) const {
  expect(value_->is_object(), "an object");
  for (const auto& [key, ignored] : value_->items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) unsupported(fmt::format("field '{}'", printable(key)));
  }
}

void JsonNode::unsupported(std::string_view what) const {
  throw_invalid(
      "{}: {} is not supported; make the ids with the model's own software and give them with --tokens FILE.json",
      where_, what);
}

void JsonNode::expect(bool fits, std::string_view wanted) const {
  CHECK(
      fits, "{}: {} found; must be {}", where_,
      printable(
          value_->dump(/*indent=*/-1, /*indent_char=*/' ', /*ensure_ascii=*/false, Json::error_handler_t::replace), 60),
      wanted);
}

}  // namespace gainlens::tokenizers
