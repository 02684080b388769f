#pragma once

#include <cstdint>
#include <string_view>

namespace gainlens {

/// Refuses the pointer file that Git leaves in place of a large file, if that was not fetched.
/// @param start  the first bytes of the file; 64 are enough
/// @param size   of the file, in bytes
/// @param where  for the message
/// @throws InvalidArgument  it is such a pointer
void refuse_lfs_pointer(std::string_view start, std::uintmax_t size, std::string_view where);

}  // namespace gainlens
