#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace gainlens::models {

/// Keys of config.json that say nothing about what a forward pass computes, and why.
struct InertGroup {
  std::string_view why;
  std::vector<std::string_view> keys;
};

/// The committed list, for every family. A key that is neither here nor read by the family is refused.
std::span<const InertGroup> inert_groups();

/// The keys of all groups in one list.
std::span<const std::string_view> inert_keys();

}  // namespace gainlens::models
