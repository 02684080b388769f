#pragma once

#include "core/json.h"

#include <string>

namespace gainlens {

/// What is wrong with JSON that was read, in words of ours: the library's begin with names of its exceptions and speak
/// of its functions. For one line of a message.
std::string json_error_in_words(const Json::exception& error);

}  // namespace gainlens
