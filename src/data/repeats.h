#pragma once

#include "data/raw_interactions.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gainlens::data {

/// [user in the file]: places of its interactions in RawInteractions::interactions, in the order of the file.
using PlacesOfUsers = std::vector<std::vector<std::size_t>>;

PlacesOfUsers places_of_users(const RawInteractions& raw);

/// Removes the places that `duplicates` does not keep.
/// @param where  names the file in messages
/// @returns  how many interactions of the file have an item that their user has had before
/// @throws InvalidArgument  duplicates are kept, the file has times, and the same user, item and time stand twice;
/// exact
///     duplicates are to go, and the file has no times
std::int64_t settle_repeats(const RawInteractions& raw, Duplicates duplicates, std::string_view where,
                            PlacesOfUsers& places);

}  // namespace gainlens::data
