#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace gainlens::data {

/// Puts items into the order of their names: as numbers if all of them are whole numbers below 2^31 without zeros in
/// front, else byte by byte. So read_interactions() numbers them.
/// @param name  of an item
void sort_by_name(std::vector<std::uint32_t>& items, const std::function<const std::string&(std::uint32_t)>& name);
/// The places of names, in the order of the names.
std::vector<std::uint32_t> order_of_names(std::span<const std::string> names);

/// Reads which number another program gives each item: a table (RFC 4180, plain or gzipped) with the columns item and
/// id. Other columns are not used. Names are those of the data, as they are. Ids are 1 to the number of items, in any
/// order; a line with id 0, which is padding in most programs, is left out.
/// @returns  [id - 1] names
/// @throws InvalidArgument  missing, unreadable; a column that is not there or there twice; malformed lines; an id that
///     is no whole number, is there twice or is left out; an item twice; no items
std::vector<std::string> read_item_ids(const std::filesystem::path& path);

}  // namespace gainlens::data
