#pragma once

#include "core/file_descriptor.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace gainlens {

/// Opens a regular file for reading by its name, which may be a link. Opening a pipe or a device could wait for ever or
/// do harm, so nothing else is opened.
/// @throws InvalidArgument  it is missing, not a regular file, or cannot be opened
FileDescriptor open_regular_file(const std::filesystem::path& path);

/// The same. A negative descriptor means that it was not opened; `reason` says why, without the name.
FileDescriptor try_open_regular_file(const std::filesystem::path& path, std::string& reason);

/// Refuses what is neither a file nor a folder, before the path is asked which of them it is. What is missing is no
/// fault here.
/// @throws InvalidArgument  a pipe, a socket or a device
void check_may_be_read(const std::filesystem::path& path);

/// Refuses the pointer file that Git leaves in place of a large file, if that was not fetched.
/// @param start  the first bytes of the file; 64 are enough
/// @param size   of the file, in bytes
/// @param where  for the message
/// @throws InvalidArgument  it is such a pointer
void refuse_lfs_pointer(std::string_view start, std::uintmax_t size, std::string_view where);

}  // namespace gainlens
