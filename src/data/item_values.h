#pragma once

#include "data/interactions.h"

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::data {

/// A number for every item of a catalogue, which is not in the interactions: its noise, its price.
struct ItemValues {
  std::string name;                ///< of the column
  std::vector<double> values;      ///< [item id - 1]
  std::size_t lines_without_item;  ///< lines that name no item of the catalogue
};

/// In size: means of many items are computed, and drawn.
inline constexpr double largest_item_value = 1e100;

/// Reads a CSV file (RFC 4180) whose first line is `item,NAME` or `item,NAME,...`: the name of an item and its number.
/// A byte order mark is skipped. Further columns, and items that the catalogue does not have, are not used.
/// `make-histories --items-file` writes such a file.
/// @throws InvalidArgument  missing, unreadable, not UTF-8; another first line; a broken quote, another number of
///     columns than in the first line; a line without a number, or with one above largest_item_value; an item twice; an
///     item of the catalogue that has no line
ItemValues read_item_values(const std::filesystem::path& path, const Interactions& interactions);

}  // namespace gainlens::data
