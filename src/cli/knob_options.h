#pragma once

#include "core/json.h"

#include <string>

namespace gainlens::cli {

/// The option of a knob's key: "--learning-rate" of learning_rate.
std::string knob_option(const std::string& key);

/// A value of the command line as JSON: a number, true or false, else a text.
Json knob_value(const std::string& text);

}  // namespace gainlens::cli
