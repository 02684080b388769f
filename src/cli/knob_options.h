#pragma once

#include "core/json.h"

#include <CLI/CLI.hpp>

#include <map>
#include <string>

namespace gainlens::cli {

/// The option of a knob's key: "--learning-rate" of learning_rate.
std::string knob_option(const std::string& key);

/// A value of the command line as JSON: a number, true or false, else a text.
Json knob_value(const std::string& text);

/// Sets a knob, where a flag that stands for one of its values is given.
/// @param knobs  texts by key, as given on the command line
/// @throws InvalidArgument  the option of the knob is given too, with another value
void read_short_form(bool given, const std::string& flag, const std::string& key, const std::string& value,
                     std::map<std::string, std::string>& knobs);

// --no-jacobian, which stands for --jacobian none.

void add_no_jacobian(CLI::App& command, bool& given, const std::string& group);
/// Sets the knob, where the option is given.
/// @param knobs  texts by key, as given on the command line
/// @throws InvalidArgument  another --jacobian is given too
void read_no_jacobian(bool given, std::map<std::string, std::string>& knobs);
/// The option with which the command line gave a knob of the filter.
std::string filter_option(const std::string& key, bool no_jacobian);

}  // namespace gainlens::cli
