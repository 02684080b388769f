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

}  // namespace gainlens::runfile
