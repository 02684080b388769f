#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace gainlens::formats {

/// Content of a file, unpacked if it starts with gzip's magic bytes. Several gzip members in a row are joined.
/// @param max_bytes  limit on the unpacked size
/// @throws InvalidArgument  missing, not a regular file, unreadable, truncated or corrupt gzip, or larger than
///     `max_bytes`
std::string read_plain_or_gzip(const std::filesystem::path& path, std::uint64_t max_bytes);

}  // namespace gainlens::formats
