#pragma once

#include "tokenizers/json_node.h"
#include "tokenizers/tokenizer.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace gainlens::tokenizers {

/// Hash for look-ups of a std::string key by a view.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

/// Tokens and their ids, both ways unique.
class Vocabulary {
 public:
  /// Largest id accepted from a file. It is far above any vocabulary in use, and small enough to keep tables by id
  /// small.
  static constexpr std::int64_t largest_id = (1 << 24) - 1;

  /// @param where  names the file and entry in messages
  /// @throws InvalidArgument  id outside [0, largest_id], or taken by another token; the token already has another id
  void add(std::string_view token, std::int64_t id, std::string_view where);

  std::optional<TokenId> find(std::string_view token) const;
  std::size_t size() const { return ids_.size(); }
  /// Largest id + 1, 0 when empty.
  std::int64_t end_id() const { return end_id_; }

  auto begin() const { return ids_.begin(); }
  auto end() const { return ids_.end(); }

 private:
  std::unordered_map<std::string, TokenId, TextHash, std::equal_to<>> ids_;
  std::unordered_set<TokenId> used_;
  std::int64_t end_id_ = 0;
};

/// An object of tokens and their ids.
/// @throws InvalidArgument  something else, empty, or as Vocabulary::add
Vocabulary read_vocabulary(const JsonNode& node);

}  // namespace gainlens::tokenizers
