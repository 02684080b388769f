#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace gainlens {

using Json = nlohmann::json;                 // keys in sorted order: canonical when dumped
using OrderedJson = nlohmann::ordered_json;  // keys in the order written

/// Parses untrusted JSON.
/// @param where  names the text in messages (usually the file)
/// @throws InvalidArgument  syntax (with byte offset), a key twice in one object, nesting deeper than 64, trailing
///     text, invalid UTF-8
Json parse_json(std::string_view text, std::string_view where);

/// Reads and parses a JSON file.
/// @throws InvalidArgument  as parse_json; the file is missing, unreadable or larger than `max_bytes`
Json read_json_file(const std::filesystem::path& path, std::uintmax_t max_bytes = 256u << 20);

/// The text of JSON, on one line or indented by `indent` spaces. Bytes that are not UTF-8 (Linux allows them in file
/// names) become U+FFFD. Safe to print: see terminal_json().
std::string json_text(const OrderedJson& json, int indent = -1);

/// Whole content of a small file.
/// @throws InvalidArgument  missing, not a regular file, unreadable, or larger than `max_bytes`
std::string read_text_file(const std::filesystem::path& path, std::uintmax_t max_bytes = 256u << 20);

}  // namespace gainlens
