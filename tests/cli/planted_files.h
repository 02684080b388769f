#pragma once

#include "core/json.h"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace gainlens::testing {

/// A text that a terminal would obey: clears the screen, colours, C1, DEL, and a line of its own.
inline const std::string plant =
    "\x1b[2J\x1b[31mPLANT\xc2\x9b"
    "31m\x7f\nSECOND LINE\r";
/// The same without blanks and line breaks, which separate words and lines.
inline const std::string one_line_plant =
    "\x1b[2J\x1b[31mPLANT\xc2\x9b"
    "31m\x7f";

/// Why what a command printed is not safe for a terminal: a byte that commands it, or the second line of the plant as a
/// line of its own. Empty if it is safe.
std::string sent_on(std::string_view printed);

/// Gets a name of the place, and the document with the text there: appended to a key or a string, or in place of
/// another value. Of long arrays, the first three elements are taken.
void for_each_planted(const Json& document, const std::function<void(const std::string&, const Json&)>& work);

Json safetensors_header(const std::string& bytes);

/// Gets a name of the place, and the bytes of the safetensors file with the text there: in the header, and in metadata.
void for_each_planted_header(const std::string& bytes,
                             const std::function<void(const std::string&, const std::string&)>& work);

/// Gets a name of the place, and the bytes of the GGUF file with the text there: in a key, a text or a tensor's name.
void for_each_planted_gguf(const std::string& bytes,
                           const std::function<void(const std::string&, const std::string&)>& work);

/// Calls work(place) when `made` is the HDF5 file `original` with the text there: in an attribute, a name or a dataset
/// of texts.
void for_each_planted_hdf5(const std::filesystem::path& original, const std::filesystem::path& made,
                           const std::function<void(const std::string&)>& work);

/// Makes `made` from `original` with the text in every text attribute of HDF5 at once.
void plant_everywhere(const std::filesystem::path& original, const std::filesystem::path& made);

}  // namespace gainlens::testing
