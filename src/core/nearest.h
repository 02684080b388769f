#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens {

/// Edit distance with insertion, deletion, substitution and swap of neighbours, each at cost 1.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate closest to `name`. Empty if every candidate is more than max(2, length of `name` / 3) edits away.
std::string nearest_match(std::string_view name, std::span<const std::string> candidates);

/// "; did you mean 'X'?" or an empty string: appended to messages about a misspelt name. The candidates may come from a
/// file: X is printable().
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace gainlens
