#pragma once

#include "experiment/experiment.h"

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

}  // namespace gainlens::cli
