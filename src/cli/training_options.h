#pragma once

#include "core/json.h"
#include "experiment/experiment.h"

#include <CLI/CLI.hpp>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::cli {

/// A metric of trainings, as a column shows it.
struct TrainedMetric {
  std::string_view name;     ///< of Result::test: "f1"
  std::string_view heading;  ///< at most 16 columns: "F1"
};

/// Mean and standard deviation over seeds, "0.8870 ± 0.1550"; one seed has none.
std::string mean_and_deviation(const std::vector<double>& values);

/// What the table of an experiment shows.
struct TrainingsTable {
  std::span<const TrainedMetric> metrics;
  std::string_view unit;  ///< "question"
  std::string out;        ///< the folder of the run, as the user gave it
};

/// Prints the metrics of the arms of an experiment, mean and standard deviation over seeds; or, as JSON, each training.
void print_trainings(std::span<const experiment::Outcome> outcomes, const TrainingsTable& table, bool json);

/// Adds --spread. Its text is read by parse_spread().
void add_spread_option(CLI::App& command, std::string& spread);
/// @throws InvalidArgument  neither batches nor seeds
experiment::Spread parse_spread(const std::string& spread);

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
