#pragma once

#include <filesystem>
#include <string>
#include <string_view>

// What lists of files with checksums say (manifest.jsonl, files.sha256), and which of it is not followed.

namespace gainlens::runfile {

/// Whether a text is a sha256 in hexadecimal digits, as all files write it.
bool is_sha256(std::string_view text);

/// Whether a name is that of a file in the folder of its list or below it, in its only spelling: no absolute path, no
/// "..", no "a//b".
bool names_file_below(const std::string& name);

/// Why a listed file is not read: it is a link, or lies behind one, which may lead out of the folder. Empty: it is not.
/// @pre  the file is there, and names_file_below(name)
std::string link_fault(const std::filesystem::path& folder, const std::string& name);

}  // namespace gainlens::runfile
