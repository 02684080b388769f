#pragma once

#include <string>
#include <string_view>

namespace gainlens {

/// The text with everything that a terminal would obey as \xNN: control characters (C1 too) except line breaks and
/// tabs, marks that turn the direction of writing, and bytes that are not UTF-8. The last guard before a terminal;
/// printable() makes a name from a file safe for one line.
std::string terminal_text(std::string_view text);

/// The same, and line breaks and tabs as \xNN too: for what has to stay on one line.
std::string terminal_line(std::string_view text);

/// What terminal_text() does, for the text of JSON, which stays JSON of the same values: \u009b.
/// @param json  valid UTF-8
std::string terminal_json(std::string_view json);

}  // namespace gainlens
