#include "tokenizers/vocabulary.h"

#include "core/check.h"

#include <algorithm>

namespace gainlens::tokenizers {

void Vocabulary::add(std::string_view token, std::int64_t id, std::string_view where) {
  CHECK(id >= 0 && id <= largest_id, "{}: token '{}' has id {}; ids are from 0 to {}", where, printable(token), id,
        largest_id);
  const auto key = static_cast<TokenId>(id);
  const auto known = find(token);
  if (known == key) return;
  CHECK(!known, "{}: token '{}' has the ids {} and {}; only one is possible", where, printable(token), *known, id);
  CHECK(used_.insert(key).second, "{}: id {} of token '{}' belongs to another token already", where, id,
        printable(token));
  ids_.emplace(token, key);
  end_id_ = std::max(end_id_, id + 1);
}

std::optional<TokenId> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

Vocabulary read_vocabulary(const JsonNode& node) {
  CHECK(node.is_object() && !node.json().empty(), "{}: no tokens; must be an object of tokens and ids", node.where());
  Vocabulary vocabulary;
  for (const auto& [token, id] : node.json().items()) {
    vocabulary.add(token, JsonNode(id, fmt::format("{}['{}']", node.where(), printable(token))).integer(),
                   node.where());
  }
  return vocabulary;
}

}  // namespace gainlens::tokenizers
