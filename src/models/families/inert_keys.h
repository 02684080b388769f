#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace gainlens::models {

/// Keys of config.json that do not change what a forward pass computes, and the reason.
struct InertGroup {
  std::string_view why;
  std::vector<std::string_view> keys;
};

/// The list for all families. A key that is not in it and that the family does not read is refused.
std::span<const InertGroup> inert_groups();

/// The keys of all groups in one list.
std::span<const std::string_view> inert_keys();

}  // namespace gainlens::models
