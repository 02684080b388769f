#pragma once

#include "core/check.h"
#include "core/json.h"
#include "core/json_words.h"

#include <cmath>
#include <filesystem>
#include <string_view>

// What the readers of runs in JSON share.

namespace gainlens::runfile {

/// Reads a file by a function of its JSON. Whatever is wrong with it becomes one message with its name.
template <typename Read>
auto read_checked(const std::filesystem::path& file, const Read& read) {
  try {
    return read(read_json_file(file));
  } catch (const Json::exception& error) {
    throw_invalid("{}: is damaged ({}); delete it and repeat the command", printable(file.string()),
                  json_error_in_words(error));
  } catch (const InvalidArgument& error) {
    throw_invalid("{}: is damaged ({}); delete it and repeat the command", printable(file.string()), error.what());
  }
}

/// @throws InvalidArgument, Json::exception  it is not there, or not a finite number
inline double number_in(const Json& json, const char* key) {
  const double number = json.at(key).get<double>();
  CHECK(std::isfinite(number), "{} is not finite", key);
  return number;
}

/// Whether `request.json` of a folder names this format.
inline bool request_has_format(const std::filesystem::path& folder, std::string_view format) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(folder / "request.json", error)) return false;
  try {
    const Json request = read_json_file(folder / "request.json");
    return request.is_object() && request.value("format", Json()) == format;
  } catch (const InvalidArgument&) {  // a damaged file: who reads another kind of run says so
    return false;
  }
}

}  // namespace gainlens::runfile
