#pragma once

#include "core/json.h"

#include <span>
#include <string_view>
#include <vector>

namespace gainlens::models {

/// Keys of config.json that do not change what a forward pass computes, and the reason.
struct InertGroup {
  std::string_view why;
  std::vector<std::string_view> keys;
};

/// The list for all families. A key that is not in it, that the family does not read and that other_keys.h does not
/// accept is refused.
std::span<const InertGroup> inert_groups();

/// The keys of all groups in one list.
std::span<const std::string_view> inert_keys();

/// Whether the name and the type of a value show that a key does not change what a forward pass computes, for keys that
/// every library spells in its own way: dropout, initial values, losses, ids of special tokens, names of tokenizers,
/// and choices between implementations of the same computation.
bool is_inert_by_kind(std::string_view key, const Json& value);

}  // namespace gainlens::models
